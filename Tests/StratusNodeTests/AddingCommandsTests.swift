import StratusModel
import StratusNode
import StratusRecords
import StratusRows
import Testing

/// Some commands are refused while the disk has no more than its reserve, and some never are.
@Suite struct AddingCommandsTests {
    private static let database = DatabaseID(
        container: ContainerReference(container: "iCloud.test", environment: .development),
        scope: .private, owner: "_u")

    private func adds(_ command: RecordCommand) -> Bool { self.adds(any: command) }

    private func adds(_ operation: some DatabaseOperation<RecordState>) -> Bool {
        self.adds(any: operation)
    }

    private func adds(any command: some Submittable) -> Bool {
        AddingCommands.contains(
            command.enveloped(
                container: Self.database.container, identity: RequestIdentity(high: 1, low: 1),
                deadlineMilliseconds: 1, schemaVersion: 0, principal: Principal(kind: .system)))
    }

    private func modify(_ kinds: [RecordOperation.Kind]) -> RecordCommand {
        .modifyRecords(
            ModifyRecords(
                database: Self.database, drawnIncarnation: ZoneIncarnation(1),
                operations: kinds.enumerated().map {
                    RecordOperation($0.element, recordName: "r\($0.offset)")
                }))
    }

    private func zones(_ kind: ModifyZones.Kind) -> RecordCommand {
        .modifyZones(
            ModifyZones(
                database: Self.database,
                operations: [.init(kind, zone: "z", drawnIncarnation: ZoneIncarnation(1))]))
    }

    @Test func `S-05 saves and new zones add; deletions, jobs and erasures do not`() {
        #expect(self.adds(self.modify([.create])))
        #expect(self.adds(self.modify([.delete, .update])))
        #expect(self.adds(self.zones(.create)))
        #expect(self.adds(.schema(.extend([]))))
        #expect(!self.adds(self.modify([.delete, .forceDelete])))
        #expect(!self.adds(self.zones(.delete)))
        #expect(!self.adds(.continueJobs(ContinueJobs())))
        #expect(!self.adds(.eraseDatabase(EraseDatabase(database: Self.database))))
        #expect(!self.adds(.schema(.install(Schema()))))
        #expect(!self.adds(.recover))
        #expect(!self.adds(PutKey(Self.database) { $0.key.wrapped = [1] }))
        let subscription = Subscription("s", .database, content: [])
        #expect(
            self.adds(
                ModifySubscriptions(Self.database) {
                    $0.operations = [.delete("r"), .create(subscription)]
                }))
        #expect(!self.adds(ModifySubscriptions(Self.database) { $0.operations = [.delete("r")] }))
    }

    @Test func `S-05 a new account adds; a session of somebody who comes to delete does not`() {
        func adds(_ kind: IdentityKey.Kind, _ condition: IdentityCommand.Condition) -> Bool {
            AddingCommands.contains(
                IdentityCommand([
                    .init(
                        IdentityKey(kind, of: [1]), if: condition,
                        .put(body: [1], expiresAtMilliseconds: 0))
                ]).enveloped(
                    identity: RequestIdentity(high: 1, low: 1), deadlineMilliseconds: 1))
        }
        #expect(adds(.address, .absent) && adds(.account, .absent))
        #expect(!adds(.session, .absent) && !adds(.account, .revision(1)))
    }
}
