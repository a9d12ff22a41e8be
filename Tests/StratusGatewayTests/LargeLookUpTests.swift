import Foundation
import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import Synchronization
import Testing

@testable import StratusGateway

/// Look-ups whose answers are read from their partition in pieces (X-27).
@Suite struct LargeLookUpTests {
    private static let names = (0..<6).map { "r\($0)" }
    private let budget = AnswerBudget(.mebibytes(64))
    private let wire: InProcess
    private let handler: Gateway

    init() {
        self.wire = InProcess()
        var settings = GatewaySettings()
        settings.developmentSchema = .justInTime
        self.handler = Gateway(
            InProcess.kernel(
                self.wire.router, self.wire.world, settings: settings, answers: self.budget))
    }

    private func post(_ operation: String, _ body: String) async -> (Int, [String: Any]) {
        let response = await self.handler.post(
            operation, body, query: "&getCurrentSyncToken=true")
        guard case .bytes(let bytes) = response.body else { return (response.status, [:]) }
        let json = try? JSONSerialization.jsonObject(with: Data(bytes))
        return (response.status, json as? [String: Any] ?? [:])
    }

    private func save(_ names: [String], size: Int) async -> Int {
        let text = String(repeating: "x", count: size)
        let operations = names.map {
            #"""
            {"operationType":"forceUpdate","record":{"recordName":"\#($0)",
            "recordType":"Text","fields":{"text":{"value":"\#(text)"}}}}
            """#
        }
        return await self.post(
            "records/modify",
            #"{"zoneID":{"zoneName":"Z"},"operations":[\#(operations.joined(separator: ","))]}"#
        ).0
    }

    /// Six records of 700,000 letters: two fit one answer of the partition.
    private func prepare() async {
        let zone =
            #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"Z"}}}]}"#
        #expect(await self.post("zones/modify", zone).0 == 200)
        #expect(await self.save(Self.names, size: 700_000) == 200)
    }

    private func lookUp() async -> (status: Int, names: [String], token: String?) {
        let records = Self.names.map { #"{"recordName":"\#($0)"}"# }.joined(separator: ",")
        let (status, json) = await self.post(
            "records/lookup", #"{"zoneID":{"zoneName":"Z"},"records":[\#(records)]}"#)
        let found = (json["records"] as? [[String: Any]] ?? []).filter { $0["fields"] != nil }
        return (
            status, found.compactMap { $0["recordName"] as? String }, json["syncToken"] as? String
        )
    }

    @Test func `what changes between two pieces is in the feed after the answer's token`()
        async throws
    {
        await self.prepare()
        let readCount = Atomic(0)
        self.wire.router.afterRead.withLock {
            $0 = { _ in
                guard readCount.add(1, ordering: .relaxed).newValue == 1 else { return }
                // The first of them was read as it was before.
                #expect(await self.save(["r0"], size: 1) == 200)
            }
        }
        let (status, names, token) = await self.lookUp()
        self.wire.router.afterRead.withLock { $0 = nil }
        #expect(status == 200)
        #expect(names == Self.names)
        #expect(readCount.load(ordering: .relaxed) >= 3)
        let (_, feed) = await self.post(
            "records/changes",
            #"{"zoneID":{"zoneName":"Z"},"syncToken":"\#(try #require(token))"}"#)
        let changed = (feed["records"] as? [[String: Any]] ?? []).compactMap {
            $0["recordName"] as? String
        }
        #expect(changed == ["r0"], "\(feed)")
    }

    @Test func `four go on at a time, and whoever else has read a first piece holds nothing of it`()
        async throws
    {
        await self.prepare()
        let held = Mutex<[CheckedContinuation<Void, Never>]>([])
        let isOpen = Atomic(false)
        self.wire.router.afterRead.withLock {
            $0 = { _ in
                await withCheckedContinuation { continuation in
                    held.withLock { held in
                        if isOpen.load(ordering: .relaxed) {
                            continuation.resume()
                        } else {
                            held.append(continuation)
                        }
                    }
                }
            }
        }
        func reach(_ count: Int) async throws {
            for _ in 0..<2_000 where held.withLock({ $0.count }) < count {
                try await Task.sleep(for: .milliseconds(5))
            }
            // More would come at once.
            try await Task.sleep(for: .milliseconds(100))
            #expect(held.withLock { $0.count } == count)
        }
        func letGo() {
            let all = held.withLock { held in
                defer { held = [] }
                return held
            }
            for continuation in all { continuation.resume() }
        }
        let answers = try await withThrowingTaskGroup(of: [String].self) { tasks in
            for _ in 0..<8 { tasks.addTask { await self.lookUp().names } }
            try await reach(8)
            letGo()
            try await reach(4)
            // The first pieces of four; those who wait hold nothing.
            #expect((4 * 1_400_000...5 * 1_400_000).contains(self.budget.size))
            held.withLock { _ in isOpen.store(true, ordering: .relaxed) }
            letGo()
            return try await tasks.reduce(into: []) { $0.append($1) }
        }
        #expect(answers == Array(repeating: Self.names, count: 8))
        #expect(self.budget.size == 0)
    }
}
