import StratusModel
import Synchronization

/// Remembers the routes of the paths that were read last.
///
/// A request's path is read for the limit of its body, for its patience, to answer it and for its
/// line in the log, and the next request often has the same path. There is one place for all paths
/// whose lengths have a remainder in common.
final class RouteMemory: Sendable {
    private struct Entry: Sendable {
        var path: String
        var route: Route
    }

    private static let placeCount = 16
    /// Longer paths are read each time.
    private static let sizeMax = 512

    private let entries = Mutex<[Entry?]>(Array(repeating: nil, count: RouteMemory.placeCount))

    func route(of path: String) -> Route? {
        let place = Self.place(of: path)
        return self.entries.withLock { entries in
            guard let entry = entries[place], Self.isSame(entry.path, path) else { return nil }
            return entry.route
        }
    }

    func keep(_ route: Route, of path: String) {
        guard path.utf8.count <= Self.sizeMax else { return }
        let entry = Entry(path: path, route: route)
        self.entries.withLock { $0[Self.place(of: path)] = entry }
    }

    private static func place(of path: String) -> Int { path.utf8.count % Self.placeCount }

    /// By bytes: to Swift, one accent composed and decomposed are equal.
    private static func isSame(_ one: String, _ other: String) -> Bool {
        let (one, other) = (one.utf8Span.span, other.utf8Span.span)
        guard one.count == other.count else { return false }
        let (left, right) = (one.bytes, other.bytes)
        var place = 0
        while place + 8 <= one.count {
            let word = left.unsafeLoadUnaligned(fromByteOffset: place, as: UInt64.self)
            if word != right.unsafeLoadUnaligned(fromByteOffset: place, as: UInt64.self) {
                return false
            }
            place += 8
        }
        while place < one.count {
            if one[place] != other[place] { return false }
            place += 1
        }
        return true
    }
}
