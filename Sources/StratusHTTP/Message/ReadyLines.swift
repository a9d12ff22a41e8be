package import StratusModel

/// The lines of a head that are the same in many answers, but for the one that names the request.
package final class ReadyLines: Sendable {
    private let before: Bytes
    private let after: Bytes

    /// - Parameters:
    ///   - identityName: the name of the line between the two parts.
    ///   - before, after: nothing in them may have to be encoded.
    package init(_ before: HeaderFields, identity identityName: String, _ after: HeaderFields) {
        precondition(
            before.isWritten && after.isWritten, "lines that would have to be encoded each time")
        self.before = before.text + Bytes("\(identityName): ".utf8)
        self.after = Bytes("\r\n".utf8) + after.text
    }

    /// Whether lines can be written once: nothing in them has to be encoded or dropped.
    package static func holds(_ fields: HeaderFields) -> Bool { fields.isWritten }

    func append(_ identity: RequestIdentity, to bytes: inout Bytes) {
        bytes.append(contentsOf: self.before)
        identity.appendUUID(to: &bytes)
        bytes.append(contentsOf: self.after)
    }

    /// The same as fields.
    package func fields(_ identity: RequestIdentity) -> HeaderFields {
        var lines = Bytes()
        self.append(identity, to: &lines)
        return HeaderFields(lines: lines.span)
    }
}
