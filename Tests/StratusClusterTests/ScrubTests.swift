import StratusCluster
import StratusDoubles
import StratusModel
import StratusStorage
import Testing

/// Cold pages are read back, and rotten ones are restored from peers.
@Suite struct ScrubTests {
    private static let registers = (0..<60).map { Bytes("register \($0)".utf8) }

    private func filled(_ seed: UInt64) throws -> ThreeNodes {
        let three = try ThreeNodes(seed: seed) { $0.checkpointSize = .kibibytes(32) }
        for register in Self.registers {
            try #require(three.write(register, Self.value(of: register)))
        }
        three.run(for: .seconds(2))
        return three
    }

    private static func value(_ register: Bytes) -> Bytes {
        Bytes(repeating: register.last ?? 0, count: 700)
    }
    private static func value(of register: Bytes) -> Bytes { Self.value(register) }

    private func rows(of node: ThreeNodes.Node) throws -> DiskPath {
        try #require(
            node.files.allFiles.first { $0.raw.contains("rows-") && $0.raw.hasSuffix(".db") })
    }

    private func expectWhole(_ three: ThreeNodes, _ name: String) {
        for node in three.nodes {
            for register in Self.registers {
                #expect(
                    three.value(register, at: node) == Self.value(register),
                    "\(name): \(register) at \(node.id)")
            }
        }
    }

    @Test func `S-40 a round over sound disks reads all and finds nothing`() throws {
        let three = try self.filled(1)
        for node in three.nodes {
            three.scrub(node)
            let figures = node.replicas.scrubFigures
            #expect(figures.roundCount == 1)
            #expect(figures.damageCount == 0 && figures.readSize > 40_000)
        }
        #expect(three.alarms.withLock { $0 } == [])
    }

    @Test(arguments: [false, true], [2, 3, 4] as [UInt64])
    func `S-40 S-28 S-10 rotten rows are set aside and come back from peers`(
        ofLeader: Bool, seed: UInt64
    ) throws {
        let three = try self.filled(seed)
        let leader = try #require(three.leader())
        let node = ofLeader ? leader : try #require(three.nodes.first { $0.id != leader.id })
        // So that all of the rows lies in the file.
        three.scrub(node)
        let path = try self.rows(of: node)
        let length = try #require(node.files.contents(of: path)).count
        node.files.flip(bit: 3, at: Int(seed) * 7_919 % length, of: path)
        three.scrub(node)
        three.run(for: .seconds(10))
        #expect(node.replicas.scrubFigures.damageCount == 1)
        #expect(node.replicas.scrubFigures.repairCount == 1)
        #expect(three.write(Self.registers[0], Self.value(Self.registers[0])))
        three.run(for: .seconds(2))
        self.expectWhole(three, "of \(ofLeader ? "the leader" : "a follower")")
        three.scrub(node)
        #expect(node.replicas.scrubFigures.damageCount == 1, "what came back is sound")
        #expect(!node.files.allFiles.contains { $0.raw.contains("damaged") })
    }

    @Test(arguments: [5, 6] as [UInt64])
    func `S-40 S-08 a rotten entry of the log comes back from peers`(seed: UInt64) throws {
        let three = try self.filled(seed)
        let leader = try #require(three.leader())
        let node = try #require(three.nodes.first { $0.id != leader.id })
        // The newest write's entry.
        let text = Self.value(Self.registers[59])
        let (path, offset) = try #require(
            node.files.allFiles.filter { $0.raw.hasSuffix(".seg") }.lazy.compactMap { path in
                let bytes = node.files.contents(of: path) ?? []
                return bytes.indices.last { bytes[$0...].starts(with: text) }.map { (path, $0) }
            }.first)
        node.files.flip(bit: 1, at: offset + 300, of: path)
        three.scrub(node)
        three.run(for: .seconds(10))
        #expect(node.replicas.scrubFigures.damageCount == 1)
        #expect(node.replicas.scrubFigures.repairCount == 1)
        #expect(three.write(Self.registers[0], Self.value(Self.registers[0])))
        three.run(for: .seconds(2))
        self.expectWhole(three, "seed \(seed)")
        three.scrub(node)
        #expect(node.replicas.scrubFigures.damageCount == 1, "what came back is sound")
    }

    @Test func `S-43 a node alone says what rotted and keeps what is left`() throws {
        let alarms = Shared<[String]>([])
        let node = try OneNode(seed: 8) { setup in
            setup.events.alarm = { _, what in alarms.withLock { $0.append(what) } }
        }
        let identities = (0..<40).map { _ in node.world.drawIdentity() }
        Task(executorPreference: node.executor) {
            for (number, identity) in identities.enumerated() {
                _ = await node.submit(
                    .write([UInt8(number)], value: Bytes(repeating: 7, count: 600)), identity)
            }
        }
        node.settle()
        func scrub() {
            let isMore = Shared(true)
            while isMore.withLock({ $0 }) {
                Task(executorPreference: node.executor) {
                    let answer = await node.replicas.scrub(.kibibytes(16))
                    isMore.withLock { $0 = answer }
                }
                // A check of the rows goes on in between.
                node.settle()
            }
        }
        scrub()
        #expect(node.replicas.scrubFigures.damageCount == 0)
        let files = node.world.simulatedFiles
        let path = try #require(files.allFiles.first { $0.raw.hasSuffix("rows-1.db") })
        let length = try #require(files.contents(of: path)).count
        files.flip(bit: 0, at: length - 2_000, of: path)
        scrub()
        #expect(node.replicas.scrubFigures.damageCount == 1)
        #expect(node.replicas.scrubFigures.repairCount == 0)
        #expect(alarms.withLock { $0 }.contains { $0.contains("rows is damaged") })
        #expect(files.contents(of: path) != nil)
    }
}
