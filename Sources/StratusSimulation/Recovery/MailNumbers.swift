import StratusCoding
import StratusModel
import StratusRecords
import StratusRows

/// How far the mail of one partition has come, by its rows. Between a checker and a partition of
/// one process; never stored, never sent.
struct MailNumbers: Equatable, FixedLevel {
    static var level: FeatureLevel { .one }

    /// In the order of the groups that were asked about.
    var posted: [UInt64] = []
    var received: [UInt64] = []

    /// What a question of them begins with. The groups follow.
    private static let mark: UInt8 = 0xF1

    struct Ask: Askable {
        typealias Refusal = String
        static var family: Command.Kind { .reference }
        var groups: [GroupID]

        func encoded(as principal: Principal) -> Bytes {
            var writer = ByteWriter()
            writer.write(MailNumbers.mark)
            writer.write(count: self.groups.count)
            for group in self.groups { writer.write(fixed: group.raw) }
            return writer.bytes
        }

        static func answer(decoding body: Bytes) throws -> MailNumbers {
            try MailNumbers(decoding: body)
        }
    }

    /// - Returns: nil for another question.
    static func groups(askedIn body: Bytes) -> [GroupID]? {
        guard body.first == Self.mark else { return nil }
        do throws(DecodingError) {
            var reader = ByteReader(body)
            _ = try reader.byte()
            var groups: [GroupID] = []
            for _ in 0..<(try reader.count(minimumSize: 2)) {
                groups.append(GroupID(try reader.fixed16()))
            }
            return groups
        } catch { return nil }
    }

    init(_ groups: [GroupID], over rows: RowView) throws(StoreError) {
        for group in groups {
            self.posted.append(try PostOffice.lastPosted(to: group, over: rows))
            self.received.append(try PostOffice.lastReceived(from: group, over: rows))
        }
    }

    func answerBody() -> Bytes {
        var writer = ByteWriter()
        writer.write(count: self.posted.count)
        for number in self.posted + self.received { writer.write(varint: number) }
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let count = try reader.count(minimumSize: 2)
        for _ in 0..<count { self.posted.append(try reader.varint()) }
        for _ in 0..<count { self.received.append(try reader.varint()) }
        try reader.finish()
    }
}
