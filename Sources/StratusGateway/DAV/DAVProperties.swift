import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime

/// What a `PROPFIND` asks for, and how one item answers it.
struct DAVProperties: Sendable {
    enum Ask: Sendable, Equatable {
        case all(including: [XMLName])
        case names
        case named([XMLName])
    }

    /// What the store holds, and what it may hold still; nil: there is no quota (RFC 4331).
    struct Quota: Sendable, Equatable {
        var used: UInt64
        var available: UInt64?
    }

    let ask: Ask
    /// Read only where it is asked for.
    var quota: Quota?

    static let namedMax = 256
    private static let namesSizeMax = 16 << 10

    /// The properties that the server makes. The first ones come without being named.
    private static let usual: [XMLName] = [
        "creationdate", "displayname", "getcontentlength", "getcontenttype", "getetag",
        "getlastmodified", "resourcetype", "supportedlock", "lockdiscovery",
    ].map { .dav($0) }

    init(_ body: Bytes) throws {
        if body.isEmpty {
            self.ask = .all(including: [])
            return
        }
        let root = try DAVService.read(body, "propfind")
        if let prop = root.element(.dav("prop")) {
            self.ask = .named(try Self.names(prop))
        } else if root.element(.dav("allprop")) != nil {
            self.ask = .all(
                including: try root.element(.dav("include")).map { try Self.names($0) } ?? [])
        } else if root.element(.dav("propname")) != nil {
            self.ask = .names
        } else {
            throw DAVFailure(400, "'propfind' asks for nothing")
        }
    }

    private static func names(_ element: XMLElement) throws -> [XMLName] {
        var known: Set<XMLName> = []
        var names: [XMLName] = []
        var size = 0
        // Each item of a folder answers all of them.
        for name in element.elements.map(\.name) where known.insert(name).inserted {
            names.append(name)
            size += name.namespace.utf8.count + name.local.utf8.count
            guard names.count <= Self.namedMax, size <= Self.namesSizeMax else {
                throw DAVFailure(400, "too many properties")
            }
        }
        return names
    }

    /// Whether the quota is asked for. Nobody gets it who does not name it.
    var readsQuota: Bool {
        let names: [XMLName] =
            switch self.ask {
            case .all(let more): more
            case .names: []
            case .named(let names): names
            }
        return names.contains(.dav("quota-used-bytes"))
            || names.contains(.dav("quota-available-bytes"))
    }

    /// Whether the locks are asked for: by name, or with everything.
    var readsLocks: Bool {
        switch self.ask {
        case .all: true
        case .names: false
        case .named(let names): names.contains(.dav("lockdiscovery"))
        }
    }

    /// Whether properties that clients keep matter.
    var readsKept: Bool {
        switch self.ask {
        case .all, .names: true
        case .named(let names): names.contains { $0.namespace != "DAV:" }
        }
    }

    /// An element that stands alone, as it is kept.
    static func alone(
        _ element: XMLElement, prefixes: [(namespace: String, prefix: String)] = []
    ) -> Bytes {
        let whole = XMLWriter.write(element, prefixes: prefixes)
        // Without the declaration before it and the line's end behind it.
        guard let line = whole.firstIndex(of: 0x0A) else { return whole }
        return Bytes(whole[(line + 1)...].dropLast())
    }

    /// Appends the `response` of one item.
    func append(
        _ item: DocumentItem, href: String, kept: [DocumentProperty], _ locks: DAVLockDiscovery,
        to bytes: inout Bytes
    ) {
        let lockDiscovery = locks.element(of: item, href: href)
        let keptNames = kept.map { XMLName($0.name.namespace, $0.name.local) }
        bytes += "<D:response><D:href>".utf8
        bytes += href.utf8
        bytes += "</D:href>".utf8
        let start = bytes.count
        bytes += "<D:propstat><D:prop>".utf8
        let begun = bytes.count
        var missing: [XMLName] = []
        switch self.ask {
        case .names:
            var value: Bytes = []
            for name in Self.usual
            where self.append(name, of: item, lockDiscovery, to: &value) {
                Self.appendEmpty(name, to: &bytes)
            }
            for name in keptNames { Self.appendEmpty(name, to: &bytes) }
        case .all(let more):
            for name in Self.usual { _ = self.append(name, of: item, lockDiscovery, to: &bytes) }
            for property in kept { bytes += property.element }
            for name in more where !Self.usual.contains(name) && !keptNames.contains(name) {
                if !self.append(name, of: item, lockDiscovery, to: &bytes) { missing.append(name) }
            }
        case .named(let names):
            for name in names where !self.append(name, of: item, lockDiscovery, to: &bytes) {
                if let index = keptNames.firstIndex(of: name) {
                    bytes += kept[index].element
                } else {
                    missing.append(name)
                }
            }
        }
        if bytes.count == begun, !missing.isEmpty {
            bytes.removeLast(bytes.count - start)
        } else {
            Self.appendEnd(200, to: &bytes)
        }
        if !missing.isEmpty {
            bytes += "<D:propstat><D:prop>".utf8
            for name in missing { Self.appendEmpty(name, to: &bytes) }
            Self.appendEnd(404, to: &bytes)
        }
        bytes += "</D:response>\n".utf8
    }

    private static func appendEmpty(_ name: XMLName, to bytes: inout Bytes) {
        guard name.namespace == "DAV:" else { return bytes += Self.alone(XMLElement(name)) }
        bytes += "<D:\(name.local)/>".utf8
    }

    private static func appendEnd(_ status: Int, to bytes: inout Bytes) {
        bytes += "</D:prop>".utf8
        bytes += Self.status(status).utf8
        bytes += "</D:propstat>".utf8
    }

    /// A `response` with properties by status. One without any has an empty one of the first
    /// status.
    static func response(href: String, _ parts: [(status: Int, properties: [Bytes])]) -> Bytes {
        var bytes = Bytes("<D:response><D:href>\(href)</D:href>".utf8)
        var isEmpty = true
        for (status, properties) in parts where !properties.isEmpty {
            isEmpty = false
            bytes += Bytes("<D:propstat><D:prop>".utf8)
            for property in properties { bytes += property }
            bytes += Bytes("</D:prop>\(Self.status(status))</D:propstat>".utf8)
        }
        if isEmpty {
            bytes += Bytes(
                "<D:propstat><D:prop/>\(Self.status(parts.first?.status ?? 200))</D:propstat>".utf8)
        }
        return bytes + Bytes("</D:response>\n".utf8)
    }

    private static func status(_ status: Int) -> String {
        "<D:status>HTTP/1.1 \(status) \(HTTPStatus.phrase(status))</D:status>"
    }

    static let opening = Bytes(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n".utf8)
    static let closing = Bytes("</D:multistatus>\n".utf8)

    /// Appends a property that the server makes.
    /// - Returns: false: the item has none of the name, and nothing was appended.
    private func append(
        _ name: XMLName, of item: DocumentItem, _ lockDiscovery: Bytes, to bytes: inout Bytes
    ) -> Bool {
        guard name.namespace == "DAV:" else { return false }
        switch name.local {
        case "displayname":
            guard !item.name.isEmpty else { return false }
            bytes += "<D:displayname>".utf8
            XMLWriter.append(item.name, to: &bytes)
            bytes += "</D:displayname>".utf8
        case "resourcetype":
            bytes +=
                item.kind == .file
                ? "<D:resourcetype/>".utf8
                : "<D:resourcetype><D:collection/></D:resourcetype>".utf8
        case "supportedlock": bytes += Self.supportedLock
        case "lockdiscovery": bytes += lockDiscovery
        case "creationdate":
            guard item.tag != 0 else { return false }
            bytes += "<D:creationdate>".utf8
            WallTime.append(item.editedAtMilliseconds, to: &bytes)
            bytes += "</D:creationdate>".utf8
        case "getlastmodified":
            guard item.tag != 0 else { return false }
            bytes += "<D:getlastmodified>".utf8
            bytes += DAVService.date(item).utf8
            bytes += "</D:getlastmodified>".utf8
        case "getcontentlength":
            guard item.kind == .file else { return false }
            bytes += "<D:getcontentlength>\(item.size)</D:getcontentlength>".utf8
        case "getcontenttype":
            guard item.kind == .file else { return false }
            bytes += "<D:getcontenttype>application/octet-stream</D:getcontenttype>".utf8
        case "quota-used-bytes":
            guard item.kind != .file, let quota else { return false }
            bytes += "<D:quota-used-bytes>\(quota.used)</D:quota-used-bytes>".utf8
        case "quota-available-bytes":
            guard item.kind != .file, let available = self.quota?.available else { return false }
            bytes += "<D:quota-available-bytes>\(available)</D:quota-available-bytes>".utf8
        case "getetag":
            guard item.kind == .file else { return false }
            bytes += "<D:getetag>".utf8
            bytes += DAVService.tag(item).utf8
            bytes += "</D:getetag>".utf8
        default: return false
        }
        return true
    }

    private static let supportedLock = Self.alone(DAVLocks.supported)
}
