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

    /// Whether properties that clients keep matter.
    var readsKept: Bool {
        switch self.ask {
        case .all, .names: true
        case .named(let names): names.contains { $0.namespace != "DAV:" }
        }
    }

    /// An element that stands alone, as it is kept.
    static func alone(_ element: XMLElement) -> Bytes {
        let whole = XMLWriter.write(element)
        // Without the declaration before it and the line's end behind it.
        guard let line = whole.firstIndex(of: 0x0A) else { return whole }
        return Bytes(whole[(line + 1)...].dropLast())
    }

    /// The `response` of one item.
    func response(
        _ item: DocumentItem, href: String, kept: [DocumentProperty], lockDiscovery: XMLElement
    ) -> Bytes {
        var found: [Bytes] = []
        var missing: [Bytes] = []
        let keptNames = kept.map { XMLName($0.name.namespace, $0.name.local) }
        switch self.ask {
        case .names:
            for name in Self.usual + keptNames where self.isThere(name, item, keptNames) {
                found.append(Self.alone(XMLElement(name)))
            }
        case .all(let more):
            for name in Self.usual {
                guard let value = self.value(name, item, lockDiscovery) else { continue }
                found.append(Self.alone(value))
            }
            found += kept.map(\.element)
            for name in more where !Self.usual.contains(name) && !keptNames.contains(name) {
                if let value = self.value(name, item, lockDiscovery) {
                    found.append(Self.alone(value))
                } else {
                    missing.append(Self.alone(XMLElement(name)))
                }
            }
        case .named(let names):
            for name in names {
                if let value = self.value(name, item, lockDiscovery) {
                    found.append(Self.alone(value))
                } else if let index = keptNames.firstIndex(of: name) {
                    found.append(kept[index].element)
                } else {
                    missing.append(Self.alone(XMLElement(name)))
                }
            }
        }
        return Self.response(href: href, [(200, found), (404, missing)])
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

    private func isThere(_ name: XMLName, _ item: DocumentItem, _ kept: [XMLName]) -> Bool {
        kept.contains(name) || self.value(name, item, XMLElement(name)) != nil
    }

    /// A property that the server makes; nil: the item has none of the name.
    private func value(
        _ name: XMLName, _ item: DocumentItem, _ lockDiscovery: XMLElement
    ) -> XMLElement? {
        guard name.namespace == "DAV:" else { return nil }
        func text(_ text: String) -> XMLElement { XMLElement(name, children: [.text(text)]) }
        switch name.local {
        case "displayname":
            return item.name.isEmpty ? nil : text(item.name)
        case "resourcetype":
            return XMLElement(
                name,
                children: item.kind != .file ? [.element(XMLElement(.dav("collection")))] : [])
        case "supportedlock": return DAVLocks.supported
        case "lockdiscovery": return lockDiscovery
        case "creationdate":
            return item.tag == 0 ? nil : text(WallTime.text(item.editedAtMilliseconds))
        case "getlastmodified": return item.tag == 0 ? nil : text(DAVService.date(item))
        case "getcontentlength": return item.kind == .file ? text(String(item.size)) : nil
        case "getcontenttype":
            return item.kind == .file ? text("application/octet-stream") : nil
        case "quota-used-bytes":
            return item.kind != .file ? self.quota.map { text(String($0.used)) } : nil
        case "quota-available-bytes":
            return item.kind != .file
                ? self.quota?.available.map { text(String($0)) } : nil
        case "getetag": return item.kind == .file ? text(DAVService.tag(item)) : nil
        default: return nil
        }
    }
}
