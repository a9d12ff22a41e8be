/// A path taken apart at its slashes, each segment decoded by itself: an encoded slash is part of a
/// name, not a separator.
///
/// Nothing is resolved or dropped: `a//b` has an empty segment in the middle, and `..` is a segment
/// like any other, which no route has.
package struct URLPath: Sendable, Equatable {
    package let segments: [String]

    /// - Returns: nil where a segment does not decode, or the path does not start with a slash.
    package init?(_ path: String) {
        guard path.utf8.first == 0x2F else { return nil }
        var segments: [String] = []
        for part in path.utf8.dropFirst().split(separator: 0x2F, omittingEmptySubsequences: false) {
            guard let segment = PercentCoding.decode(part) else { return nil }
            segments.append(segment)
        }
        self.segments = segments
    }
}
