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

    /// One `activelock`, for an element in which `D` stands for `DAV:`.
    ///
    /// - Parameter root: the address of the lock's item.
    static func activeLock(_ lock: DocumentLock, root: String, at now: Int64) -> Bytes {
        let seconds = max(1, (lock.untilMilliseconds - now) / 1_000)
        var bytes = Bytes(
            ("<D:activelock><D:locktype><D:write/></D:locktype><D:lockscope>"
                + (lock.isExclusive ? "<D:exclusive/>" : "<D:shared/>")
                + "</D:lockscope><D:depth>\(lock.isInfinite ? "infinity" : "0")</D:depth>").utf8)
        // It stands alone as it was kept.
        bytes += lock.owner
        bytes +=
            ("<D:timeout>Second-\(seconds)</D:timeout><D:locktoken><D:href>"
            + Self.text(lock.token) + "</D:href></D:locktoken><D:lockroot><D:href>").utf8
        XMLWriter.append(root, to: &bytes)
        bytes += "</D:href></D:lockroot></D:activelock>".utf8
        return bytes
    }

    /// `lockdiscovery` around what ``activeLock(_:root:at:)`` wrote.
    static func discovery(_ written: Bytes) -> Bytes {
        written.isEmpty
            ? Bytes("<D:lockdiscovery/>".utf8)
            : Bytes("<D:lockdiscovery>".utf8) + written + Bytes("</D:lockdiscovery>".utf8)
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
