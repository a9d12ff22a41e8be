import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime

/// `GET`, `PROPFIND` and `PROPPATCH`.
extension DAVService {
    private static let multiStatus: HeaderFields = [
        "Content-Type": "application/xml; charset=UTF-8"
    ]

    /// A body as a document with this root element.
    static func read(_ body: Bytes, _ root: String) throws -> XMLElement {
        let document: XMLElement
        do throws(XMLError) { document = try XMLReader.read(body) } catch {
            throw DAVFailure(400, "\(error.reason.rawValue), at byte \(error.offset)")
        }
        guard document.name == .dav(root) else {
            throw DAVFailure(400, "the document is no '\(root)'")
        }
        return document
    }

    func document(_ root: String) throws -> XMLElement { try Self.read(self.exchange.body, root) }

    // MARK: GET

    func get(_ target: Place) async throws -> HTTPResponse {
        guard let item = target.item else { throw DAVFailure(404, "no such item") }
        if item.kind != .file { return self.page(target, item) }
        var content = DocumentContent.inline([])
        var known = item
        if item.contentTag != 0 {
            guard
                case .content(let found, let version, let stored) = try await self.documents.ask(
                    .content(id: item.id, version: nil))
            else { throw RouteError.otherKind }
            guard let found, version != nil else { throw Overtaken.changed }
            known = found
            content = stored
        }
        return try await self.answer(content, of: known)
    }

    /// A content, unless the client's conditions say that it has it already.
    func answer(_ content: DocumentContent, of item: DocumentItem) async throws -> HTTPResponse {
        let tag = Self.tag(item)
        var headers = DocumentFiles.headers(tag: tag)
        headers.set("Last-Modified", Self.date(item))
        if try self.checkConditions(item) {
            return HTTPResponse(status: 304, headers: headers)
        }
        do {
            return try await DocumentFiles.answer(
                content, self.head, headers, tag: tag, of: self.exchange.holder.home,
                in: self.files)
        } catch AssetFailure.notFound {
            // Another content took its place, and its time was over.
            throw Overtaken.changed
        }
    }

    /// A folder as a page for people. It has no script and needs none.
    ///
    /// - Parameter members: what is in a package, or in a folder of one.
    func page(
        _ target: Place, _ folder: DocumentItem, members: [DocumentItem]? = nil
    ) -> HTTPResponse {
        let nonce = self.exchange.kernel.world.drawIdentity().uuid
        let headers: HeaderFields = [
            "Content-Type": "text/html; charset=UTF-8",
            "Content-Security-Policy":
                "default-src 'none'; style-src 'nonce-\(nonce)'; base-uri 'none'; "
                + "form-action 'none'; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
        ]
        if self.head.method == "HEAD" { return HTTPResponse(status: 200, headers: headers) }
        let app = self.route.container.container
        let title = PeoplePage.escape(target.names.last ?? app)
        let listing = DAVListing(
            self, folder, members: members,
            opening: Bytes(
                ("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>\(title)"
                    + "</title><meta name=\"viewport\" content=\"width=device-width, "
                    + "initial-scale=1\"><style nonce=\"\(nonce)\">\(Self.style)</style></head>"
                    + "<body><h1>\(title)</h1>"
                    + (target.names.isEmpty
                        ? "<ul>\n"
                        : "<p>of \(PeoplePage.escape(app))</p><ul>\n"
                            + "<li><a href=\"../\">..</a></li>\n"))
                    .utf8),
            closing: Bytes("</ul></body></html>\n".utf8)
        ) { items in
            var bytes: Bytes = []
            var turn = ListingTurn()
            for item in items {
                let start = bytes.count
                let isFolder = item.kind != .file
                let names = target.names + [item.name]
                bytes += Bytes(
                    ("<li><a href=\"\(self.route.href(names, isFolder: isFolder))\">"
                        + PeoplePage.escape(item.name) + (isFolder ? "/</a>" : "</a>")
                        + " <span>\(Self.details(of: item))</span></li>\n").utf8)
                await turn.spend(items: 1, size: bytes.count - start)
            }
            return bytes
        }
        return HTTPResponse(status: 200, headers: headers, body: .stream(listing, length: nil))
    }

    private static let style = """
        body{font:16px/1.6 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;\
        color:#1a1a1a;background:#fff}
        h1{font-size:1.4rem;margin:0}ul{list-style:none;padding:0}
        li{display:flex;justify-content:space-between;gap:1rem;border-top:1px solid #ddd;padding:.3rem 0}
        a{color:#0b57d0;overflow-wrap:anywhere}span{white-space:nowrap;color:#666}
        @media (prefers-color-scheme:dark){body{color:#eee;background:#161616}a{color:#a8c7fa}\
        li{border-color:#444}span{color:#aaa}}
        """

    /// What stands beside a name. The folders that everybody has were never edited.
    private static func details(of item: DocumentItem) -> String {
        var details: [String] = []
        if item.kind == .file { details.append(Self.text(ofSize: item.size)) }
        if item.editedAtMilliseconds > 0 {
            details.append(String(WallTime.text(item.editedAtMilliseconds).prefix(10)))
        }
        return details.joined(separator: ", ")
    }

    /// For people, in steps of a thousand.
    static func text(ofSize size: UInt64) -> String {
        if size == 1 { return "1 byte" }
        var (whole, tenths, units) = (size, UInt64(0), ["bytes", "kB", "MB", "GB", "TB"][...])
        while whole >= 1_000, units.count > 1 {
            tenths = whole % 1_000 / 100
            whole /= 1_000
            units.removeFirst()
        }
        let isExact = units.count == 5 || whole >= 100
        return "\(whole)\(isExact ? "" : ".\(tenths)") \(units.first ?? "bytes")"
    }

    // MARK: PROPFIND

    func propertiesFound(_ target: Place) async throws -> HTTPResponse {
        let wanted = try await self.wanted()
        let isDeep: Bool
        switch self.head.headers["Depth"]?.lowercased() {
        case "0": isDeep = false
        case "1": isDeep = true
        case nil, "infinity":
            throw DAVFailure(
                403, "ask folder by folder: 'Depth' is 0 or 1",
                condition: "propfind-finite-depth")
        default: throw DAVFailure(400, "'Depth' is 0 or 1")
        }
        guard let item = target.item else { throw DAVFailure(404, "no such item") }
        let href = self.href(target)
        let locks = wanted.readsLocks ? try await self.discovery(at: target) : .none
        let own = try await self.responses(
            [item], of: wanted, locks, hasKept: target.inside?.path.isEmpty ?? true,
            href: { _ in href })
        guard isDeep, item.kind != .file else {
            return HTTPResponse(
                status: 207, headers: Self.multiStatus,
                body: .bytes(DAVProperties.opening + own + DAVProperties.closing))
        }
        let hasKept = target.inside == nil
        let listing = DAVListing(
            self, item, members: target.inside?.members, opening: DAVProperties.opening + own,
            closing: DAVProperties.closing
        ) { items in
            try await self.responses(
                items, of: wanted, locks, hasKept: hasKept,
                // That of a folder ends with a slash.
                href: { href + PercentCoding.encode($0.name) + ($0.kind == .file ? "" : "/") })
        }
        return HTTPResponse(
            status: 207, headers: Self.multiStatus, body: .stream(listing, length: nil))
    }

    private func discovery(at target: Place) async throws -> DAVLockDiscovery {
        let now = self.now
        return DAVLockDiscovery(
            try await self.locks().all, at: target, root: { self.root(of: $0, target) },
            write: { DAVLocks.activeLock($0, root: $1, at: now) })
    }

    private func wanted() async throws -> DAVProperties {
        var wanted = try DAVProperties(self.exchange.body)
        guard wanted.readsQuota else { return wanted }
        let database = self.exchange.holder.home
        guard
            case .use(let use, _, let assets) = try await self.exchange.ask(
                .use(database), at: .database(database))
        else { throw RouteError.otherKind }
        let used = use.size + assets.size
        let limit = UInt64(self.exchange.kernel.limits.privateDatabaseSizeMax.raw)
        wanted.quota = DAVProperties.Quota(
            used: used, available: limit == 0 ? nil : limit - min(limit, used))
        return wanted
    }

    private func responses(
        _ items: [DocumentItem], of wanted: DAVProperties, _ locks: DAVLockDiscovery,
        hasKept: Bool, href: (DocumentItem) -> String
    ) async throws -> Bytes {
        var kept: [[DocumentProperty]] = []
        if wanted.readsKept, hasKept, !items.isEmpty {
            guard
                case .properties(let found) = try await self.documents.ask(
                    .properties(ids: items.map(\.id)), until: self.pageDeadline)
            else { throw RouteError.otherKind }
            kept = found
        }
        var bytes: Bytes = []
        var turn = ListingTurn()
        for (index, item) in items.enumerated() {
            let start = bytes.count
            wanted.append(
                item, href: href(item), kept: index < kept.count ? kept[index] : [], locks,
                to: &bytes)
            await turn.spend(items: 1, size: bytes.count - start)
        }
        return bytes
    }

    /// Pages of a long answer are read one after the other, as the client takes them.
    var pageDeadline: MonotonicTime {
        self.exchange.kernel.world.now + self.exchange.kernel.limits.commandDeadline
    }

    // MARK: PROPPATCH

    func patch(_ target: Place, _ shown: [String]) async throws -> HTTPResponse {
        let update = try self.document("propertyupdate")
        guard let item = target.item else { throw DAVFailure(404, "no such item") }
        if DocumentNames.isRoot(item.id) {
            throw DAVFailure(403, "the roots keep no properties")
        }
        _ = try self.checkConditions(item)
        var changes: [DocumentPropertyChange] = []
        var names: [XMLName] = []
        var size = 0
        for instruction in update.elements {
            guard instruction.name == .dav("set") || instruction.name == .dav("remove") else {
                continue
            }
            for prop in instruction.elements where prop.name == .dav("prop") {
                for property in prop.elements {
                    guard changes.count < DAVProperties.namedMax else {
                        throw DAVFailure(400, "too many properties")
                    }
                    let name = DocumentProperty.Name(
                        namespace: property.name.namespace, local: property.name.local)
                    if !names.contains(property.name) { names.append(property.name) }
                    if instruction.name == .dav("remove") {
                        changes.append(.remove(name))
                        continue
                    }
                    var kept = property
                    Self.inherit(from: [prop, instruction, update], &kept)
                    let element = DAVProperties.alone(kept)
                    size += element.count
                    // What is set and removed again by the same request counts too.
                    guard size <= 4 * DocumentProperty.sizeMax else {
                        throw DAVFailure(507, "the properties are too large")
                    }
                    changes.append(.set(DocumentProperty(name, element: element)))
                }
            }
        }
        let empty = { (names: [XMLName]) in
            names.map { DAVProperties.alone(XMLElement($0)) }
        }
        let parts: [(status: Int, properties: [Bytes])]
        let protected = names.filter { $0.namespace == "DAV:" }
        if protected.isEmpty {
            if !changes.isEmpty {
                _ = try await self.submit(
                    [
                        .annotate(
                            id: item.id, changes, countMax: DocumentProperty.countMax,
                            sizeMax: DocumentProperty.sizeMax)
                    ], shown)
            }
            parts = [(200, empty(names))]
        } else {
            parts = [
                (403, empty(protected)), (424, empty(names.filter { $0.namespace != "DAV:" })),
            ]
        }
        return HTTPResponse(
            status: 207, headers: Self.multiStatus,
            body: .bytes(
                DAVProperties.opening
                    + DAVProperties.response(href: self.href(target), parts)
                    + DAVProperties.closing))
    }

    /// The language of a property is the one of the nearest element around it.
    private static func inherit(from outer: [XMLElement], _ property: inout XMLElement) {
        let language = XMLName("http://www.w3.org/XML/1998/namespace", "lang")
        for element in [property] + outer {
            guard let found = element.attributes.first(where: { $0.name == language }) else {
                continue
            }
            if element != property { property.attributes.append(found) }
            return
        }
    }
}
