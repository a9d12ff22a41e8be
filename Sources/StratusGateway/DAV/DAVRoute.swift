import StratusHTTP
package import StratusModel
import StratusRecords

/// A path of WebDAV: `/dav/<container>/<environment>/` and names, the last one with or without a
/// slash behind it.
package struct DAVRoute: Sendable, Equatable {
    package var container: ContainerReference
    package var names: [String]

    static let root = "/dav/"

    /// - Returns: nil for what names no place, whoever asks.
    package init?(path: String) {
        guard path.utf8.count <= 4_096, var segments = URLPath(path)?.segments,
            segments.count >= 3, segments[0] == "dav"
        else { return nil }
        if segments.last == "" { segments.removeLast() }
        guard segments.count >= 3, ContainerReference.isName(segments[1]),
            let environment = Environment(name: segments[2])
        else { return nil }
        self.container = ContainerReference(container: segments[1], environment: environment)
        self.names = Array(segments.dropFirst(3))
        guard self.names.count <= DocumentNames.depthMax,
            self.names.allSatisfy({ DocumentNames.isName($0) })
        else { return nil }
    }

    /// Whether a path is one of the folders that stores are in.
    static func isAboveStores(_ path: String) -> Bool {
        guard path.utf8.count <= 4_096, var segments = URLPath(path)?.segments,
            segments.first == "dav"
        else { return false }
        if segments.last == "" { segments.removeLast() }
        return segments.count < 3
            && segments.dropFirst().allSatisfy { ContainerReference.isName($0) }
    }

    /// The path of other names in the same store, as a link.
    func href(_ names: [String], isFolder: Bool) -> String {
        var path =
            "\(Self.root)\(PercentCoding.encode(self.container.container))/"
            + self.container.environment.name
        for name in names { path += "/" + PercentCoding.encode(name) }
        return isFolder ? path + "/" : path
    }

    /// The place that `Destination` or a tagged `If` names: an address of this host, or a path.
    ///
    /// - Returns: nil for an address elsewhere, and for what is no place.
    static func named(_ text: String, host: String?) -> DAVRoute? {
        var rest = text[...]
        if !rest.hasPrefix("/") {
            guard let colon = rest.firstIndex(of: ":"),
                ["http", "https"].contains(rest[..<colon].lowercased()),
                rest[colon...].hasPrefix("://")
            else { return nil }
            rest = rest[colon...].dropFirst(3)
            let end = rest.firstIndex(of: "/") ?? rest.endIndex
            guard let host, rest[..<end].lowercased() == host.lowercased() else { return nil }
            rest = rest[end...]
        }
        guard !rest.contains("?"), !rest.contains("#") else { return nil }
        return DAVRoute(path: String(rest))
    }
}
