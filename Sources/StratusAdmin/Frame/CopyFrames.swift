import StratusAdminModel
import StratusCoding
package import StratusModel
package import StratusRuntime

/// The copies of one body as an administrator sends them: a ``CopyFrame`` before each.
package struct CopyFrames {
    private let source: any RequestBody
    private var buffer = Bytes()

    package init(_ source: any RequestBody) { self.source = source }

    /// Nil at the end.
    package mutating func next() async throws(NodeControlFailure) -> (
        ordinal: UInt32, bytes: Bytes
    )? {
        guard try await self.fill(CopyFrame.size) else { return nil }
        let frame: CopyFrame
        do throws(DecodingError) {
            frame = try CopyFrame(decoding: Bytes(self.buffer[..<CopyFrame.size]))
        } catch { throw .refused("a copy is larger than \(AssetLimits.storedSizeMax) bytes") }
        let end = CopyFrame.size + Int(frame.storedSize)
        guard try await self.fill(end) else { throw .refused(Self.cutShort) }
        let bytes = Bytes(self.buffer[CopyFrame.size..<end])
        self.buffer.removeFirst(end)
        return (frame.ordinal, bytes)
    }

    private static let cutShort = "the last copy is cut short"

    /// - Returns: false at the end of everything.
    private mutating func fill(_ count: Int) async throws(NodeControlFailure) -> Bool {
        while self.buffer.count < count {
            let piece: Bytes?
            do throws(RequestBodyError) { piece = try await self.source.next() } catch {
                throw .refused("the body could not be read")
            }
            guard let piece else {
                if self.buffer.isEmpty { return false }
                throw .refused(Self.cutShort)
            }
            self.buffer += piece
        }
        return true
    }
}
