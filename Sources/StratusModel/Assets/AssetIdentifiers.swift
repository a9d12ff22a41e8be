/// The name of an asset: the file that records refer to, as a client knows it. Drawn once and never
/// given to another asset.
package struct AssetID: Sendable, Hashable, Comparable, CustomStringConvertible {
    package var raw: UInt128
    package init(_ raw: UInt128) { self.raw = raw }
    package static func < (one: Self, other: Self) -> Bool { one.raw < other.raw }
    package var description: String { "asset \(String(self.raw, radix: 16))" }
}

/// The name of an asset's sealed bytes: its chunks in order. Drawn for each upload and never given
/// twice, so any sound bytes under a body's name are the right ones.
package struct BodyID: Sendable, Hashable, Comparable, CustomStringConvertible {
    package var raw: UInt128
    package init(_ raw: UInt128) { self.raw = raw }
    package static func < (one: Self, other: Self) -> Bool { one.raw < other.raw }
    package var description: String { "body \(String(self.raw, radix: 16))" }
}

/// The name by which every node calls its copy of one chunk of one body.
///
/// Ordered by body and then ordinal: the order of ``CopyStore/held(from:limit:)``, and of the rows
/// of bodies.
package struct CopyName: Sendable, Hashable, Comparable, CustomStringConvertible {
    package var body: BodyID
    /// Counted from 0.
    package var ordinal: UInt32

    package init(body: BodyID, ordinal: UInt32) {
        self.body = body
        self.ordinal = ordinal
    }

    package static let first = CopyName(body: BodyID(0), ordinal: 0)
    /// The name after this one; nil after the last there can be.
    package var next: CopyName? {
        if self.ordinal < .max { return CopyName(body: self.body, ordinal: self.ordinal + 1) }
        return self.body.raw < .max
            ? CopyName(body: BodyID(self.body.raw + 1), ordinal: 0) : nil
    }

    package static func < (one: Self, other: Self) -> Bool {
        (one.body, one.ordinal) < (other.body, other.ordinal)
    }
    package var description: String { "\(self.body)#\(self.ordinal)" }
}

/// One ticket to upload a file. Until a record holds the file, a second upload under the same
/// ticket takes the place of the first.
package struct UploadID: Sendable, Hashable, Comparable, CustomStringConvertible {
    package var raw: UInt128
    package init(_ raw: UInt128) { self.raw = raw }
    package static func < (one: Self, other: Self) -> Bool { one.raw < other.raw }
    package var description: String { "upload \(String(self.raw, radix: 16))" }

    /// As a save states it beside the asset: see ``AssetReference/receipt``.
    package var text: String { String(self.raw, radix: 16) }
    /// Nil: no text of an upload.
    package init?(text: String) {
        guard let raw = UInt128(text, radix: 16) else { return nil }
        self.raw = raw
    }
}
