import StratusCluster
import StratusModel
import Testing

/// A peer may name only some principals as the sender of a command (security audit 9).
@Suite struct PeerPrincipalsTests {
    private func refusal(_ principal: Principal, _ kind: Command.Kind = .records) -> String? {
        PeerPrincipals.refusal(
            of: Command(
                kind: kind, identity: RequestIdentity(high: 1, low: 1), deadlineMilliseconds: 0,
                container: ContainerReference(container: "c", environment: .production),
                schemaVersion: 0, principal: principal, body: []))
    }

    @Test func `security audit 9: what gateways say is taken`() {
        #expect(refusal(Principal(kind: .anonymous)) == nil)
        #expect(refusal(Principal(kind: .user, userRecordName: "_a", roles: ["a", "b"])) == nil)
        #expect(refusal(Principal(kind: .serverKey, userRecordName: "_k")) == nil)
        #expect(refusal(Principal(kind: .system)) == nil)
        #expect(refusal(Principal(kind: .system, userRecordName: "_a")) == nil)
        #expect(refusal(Principal(kind: .administrator)) == nil)
        for kind in [Command.Kind.identity, .system, .mail] {
            #expect(refusal(Principal(kind: .system), kind) == nil)
        }
    }

    @Test func `security audit 9: what no gateway says is refused`() {
        #expect(refusal(Principal(kind: .anonymous, userRecordName: "_a")) != nil)
        #expect(refusal(Principal(kind: .anonymous, roles: ["a"])) != nil)
        #expect(refusal(Principal(kind: .user)) != nil)
        #expect(refusal(Principal(kind: .user, userRecordName: "a")) != nil)
        #expect(refusal(Principal(kind: .user, userRecordName: "_a", roles: ["b", "a"])) != nil)
        #expect(refusal(Principal(kind: .user, userRecordName: "_a", roles: ["a", "a"])) != nil)
        #expect(refusal(Principal(kind: .system, roles: ["a"])) != nil)
        #expect(refusal(Principal(kind: .administrator, userRecordName: "_a")) != nil)
        for kind in [Command.Kind.identity, .system, .mail] {
            #expect(refusal(Principal(kind: .user, userRecordName: "_a"), kind) != nil)
            #expect(refusal(Principal(kind: .anonymous), kind) != nil)
        }
    }
}
