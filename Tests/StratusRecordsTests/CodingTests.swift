import StratusCoding
import StratusModel
import StratusRecords
import Testing

@Suite struct CodingTests {
    @Test func `a modify command comes back as it was`() throws {
        let container = ContainerReference(container: "iCloud.a", environment: .development)
        let command = RecordCommand.modifyRecords(
            ModifyRecords(
                database: DatabaseID(container: container, scope: .public, owner: ""),
                drawnIncarnation: ZoneIncarnation(7),
                operations: [RecordOperation(.create, recordName: "a", recordType: "T")]))
        #expect(try RecordCommand(decoding: command.encoded(), container: container) == command)
    }
}
