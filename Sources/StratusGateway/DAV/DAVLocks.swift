import StratusHTTP
import StratusModel
import StratusRecords

/// The locks of a store that hold, as a request of WebDAV sees them.
struct DAVLocks: Sendable {
    let all: [DocumentLock]

    init(_ locks: [DocumentLock]) { self.all = locks }

    /// The locks on what is at a place. On a place where nothing is they are the infinite ones of
    /// the folders above it.
    func on(_ place: DAVService.Place) -> [DocumentLock] {
        let ids = place.ids
        return self.all.filter {
            $0.item == place.item?.id || $0.isInfinite && ids.contains($0.item)
        }
    }

    /// The locks that forbid to make something at a place where nothing is, without their tokens.
    func onFolder(of place: DAVService.Place) -> [DocumentLock] {
        let ids = place.ids
        return self.all.filter {
            $0.item == place.folder?.id || $0.isInfinite && ids.contains($0.item)
        }
    }

    // MARK: Tokens

    private static let scheme = "opaquelocktoken:"

    /// A token as clients see it: a UUID.
    static func text(_ token: String) -> String {
        var text = Self.scheme
        for (index, digit) in token.enumerated() {
            if index == 8 || index == 12 || index == 16 || index == 20 { text += "-" }
            text.append(digit)
        }
        return text
    }

    /// Nil for what is no token of ours.
    static func token(_ text: String) -> String? {
        guard text.hasPrefix(Self.scheme) else { return nil }
        let digits = text.dropFirst(Self.scheme.count).lowercased().filter { $0 != "-" }
        return DocumentNames.isID(digits) ? digits : nil
    }

    // MARK: Properties

    /// `lockdiscovery`, with the address of each lock's item.
    func discovery(
        _ locks: [DocumentLock], at now: Int64, root: (DocumentLock) -> String
    ) -> XMLElement {
        XMLElement(
            .dav("lockdiscovery"),
            children: locks.map { lock in
                var children: [XMLElement] = [
                    XMLElement(
                        .dav("locktype"), children: [.element(XMLElement(.dav("write")))]),
                    XMLElement(
                        .dav("lockscope"),
                        children: [
                            .element(
                                XMLElement(.dav(lock.isExclusive ? "exclusive" : "shared")))
                        ]),
                    XMLElement(
                        .dav("depth"), children: [.text(lock.isInfinite ? "infinity" : "0")]),
                ]
                if let owner = try? XMLReader.read(lock.owner) { children.append(owner) }
                let seconds = max(1, (lock.untilMilliseconds - now) / 1_000)
                children += [
                    XMLElement(.dav("timeout"), children: [.text("Second-\(seconds)")]),
                    XMLElement(
                        .dav("locktoken"),
                        children: [
                            .element(
                                XMLElement(
                                    .dav("href"), children: [.text(Self.text(lock.token))]))
                        ]),
                    XMLElement(
                        .dav("lockroot"),
                        children: [
                            .element(XMLElement(.dav("href"), children: [.text(root(lock))]))
                        ]),
                ]
                return .element(
                    XMLElement(.dav("activelock"), children: children.map { .element($0) }))
            })
    }

    static let supported = XMLElement(
        .dav("supportedlock"),
        children: ["exclusive", "shared"].map { scope in
            .element(
                XMLElement(
                    .dav("lockentry"),
                    children: [
                        .element(
                            XMLElement(
                                .dav("lockscope"),
                                children: [.element(XMLElement(.dav(scope)))])),
                        .element(
                            XMLElement(
                                .dav("locktype"),
                                children: [.element(XMLElement(.dav("write")))])),
                    ]))
        })
}
