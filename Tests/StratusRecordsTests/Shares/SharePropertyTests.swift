import Foundation
import StratusCoding
import StratusDoubles
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// Random lives of a zone that is shared, beside a model that knows no rows. After each step every
/// person reads, writes and follows the link as the model says, on a replica that remembers nothing
/// too. `STRATUS_SEEDS` sets the number of seeds.
@Suite struct SharePropertyTests {
    private static let seedCount =
        ProcessInfo.processInfo.environment["STRATUS_SEEDS"].flatMap { UInt64($0) } ?? 20
    private static let stepCount = 500
    private static let users = ["_a", "_b", "_c", "_d"]

    /// Who stands where, said as the contract says it.
    private struct Model {
        struct Person: Equatable {
            var permission: SharePermission
            var hasAccepted = false
            var isPublic = false
        }

        var people: [String: Person] = [:]
        /// Nil: nothing is shared.
        var isPublic: SharePermission?

        func permission(of user: String) -> SharePermission {
            guard let isPublic, let person = self.people[user], person.hasAccepted else {
                return .none
            }
            return person.isPublic ? isPublic : person.permission
        }

        func isForLink(_ user: String) -> Bool {
            guard let isPublic else { return false }
            return self.people[user] != nil || isPublic != .none
        }

        mutating func open(_ permission: SharePermission) {
            guard permission != self.isPublic else { return }
            self.isPublic = permission
            self.people = self.people.filter { permission != .none && $0.value.hasAccepted }
        }

        mutating func join(_ user: String) {
            if self.people[user] == nil {
                self.people[user] = Person(permission: .readOnly, isPublic: true)
            }
            self.people[user]?.hasAccepted = true
        }

        mutating func end() {
            self.people = [:]
            self.isPublic = nil
        }
    }

    private struct Life {
        let seed: UInt64
        var random: SeededGenerator
        var bench: ShareBench
        var model = Model()
        var links: [ShareLink] = []
        var acceptedCount = 0

        init(_ seed: UInt64, bugs: PlantedBugs) {
            self.seed = seed
            self.random = SeededGenerator(seed: seed)
            self.bench = ShareBench(bugs: bugs)
        }

        private mutating func draw(_ count: Int) -> Int {
            Int.random(in: 0..<count, using: &self.random)
        }
        private mutating func user() -> String {
            SharePropertyTests.users[self.draw(SharePropertyTests.users.count)]
        }
        private mutating func permission() -> SharePermission {
            self.draw(2) == 0 ? .readOnly : .readWrite
        }

        /// - Returns: what differs from the model.
        mutating func step() throws -> String? {
            let isShared = self.model.isPublic != nil
            switch self.draw(12) {
            case 0..<2 where !isShared: return try self.create()
            case 0: return try self.end()
            case 1...4: return try self.join()
            case 5: return try self.leave()
            case 6...7: return try self.list()
            case 8: return try self.open()
            case 9: return try self.relink()
            case 10: return try self.remakeZone()
            default:
                self.bench.bench.state.forget()
                return nil
            }
        }

        private mutating func create() throws -> String? {
            let result = try self.bench.save(self.bench.draft(), .create)
            guard let record = result.saved else { return "a share is refused: \(result)" }
            self.model.isPublic = SharePermission.none
            self.keep(record)
            return nil
        }

        private mutating func keep(_ record: Record) {
            guard let text = record.shortGUID, let link = ShareLink(text: text) else { return }
            if !self.links.contains(link) { self.links.append(link) }
        }

        private mutating func end() throws -> String? {
            guard self.draw(4) == 0 else { return nil }
            let result = try self.bench.bench.modify(.delete(ShareNames.zoneWide))[0]
            self.model.end()
            return result.isDeleted ? nil : "a share does not end: \(result)"
        }

        private mutating func join() throws -> String? {
            guard !self.links.isEmpty else { return nil }
            let user = self.user()
            // Mostly the newest: the others lead nowhere.
            let isNewest = self.draw(4) != 0
            let link = self.links[isNewest ? self.links.count - 1 : self.draw(self.links.count)]
            let isOwn = try self.bench.currentLink() == link
            let isTaken = try self.bench.join(user, by: link)
            let expected = isOwn && self.model.isForLink(user)
            if expected { self.model.join(user) }
            if isTaken { self.acceptedCount += 1 }
            return isTaken == expected ? nil : "\(user) joins: \(isTaken), not \(expected)"
        }

        private mutating func leave() throws -> String? {
            let user = self.user()
            let expected = self.model.permission(of: user) != .none
            let hasLeft: Bool
            if self.draw(2) == 0 {
                hasLeft = try self.bench.leave(user)
            } else {
                let outcome = try self.bench.bench.apply(
                    .modifyRecords(
                        ModifyRecords(
                            database: self.bench.database, zone: ShareBench.zone,
                            drawnIncarnation: ZoneIncarnation(1),
                            operations: [.delete(ShareNames.zoneWide)])),
                    as: ShareBench.user(user))
                hasLeft =
                    if case .records(let modified) = outcome, case .left = modified.results[0] {
                        true
                    } else { false }
            }
            if expected { self.model.people[user] = nil }
            return hasLeft == expected ? nil : "\(user) leaves: \(hasLeft), not \(expected)"
        }

        /// The owner sends a list of people.
        private mutating func list() throws -> String? {
            guard let isPublic = self.model.isPublic else { return nil }
            var draft = self.bench.draft([])
            var next = self.model.people.filter(\.value.isPublic)
            var isRefused = false
            for (place, user) in SharePropertyTests.users.enumerated() where self.draw(2) == 0 {
                let permission = self.permission()
                let isRemoved = self.draw(4) == 0
                draft.invitations.append(
                    ShareInvitation {
                        $0.drawnID = draft.drawnOwnerID + 10 + UInt128(place)
                        $0.identity = .user(user)
                        $0.permission = permission
                        $0.isRemoved = isRemoved
                    })
                if isRemoved {
                    next[user] = nil
                } else if var known = self.model.people[user] {
                    if !known.isPublic { known.permission = permission }
                    next[user] = known
                } else {
                    if isPublic != .none { isRefused = true }
                    next[user] = Model.Person(permission: permission)
                }
            }
            let result = try self.bench.save(draft, .forceUpdate)
            if !isRefused { self.model.people = next }
            return (result.refusal == .shareIsPublic) == isRefused ? nil : "a list: \(result)"
        }

        private mutating func open() throws -> String? {
            guard self.model.isPublic != nil else { return nil }
            let permission = [SharePermission.none, .readOnly, .readWrite][self.draw(3)]
            var draft = self.bench.draft()
            draft.publicPermission = permission
            let result = try self.bench.save(draft)
            self.model.open(permission)
            return result.saved == nil ? "\(permission): \(result)" : nil
        }

        private mutating func relink() throws -> String? {
            guard self.model.isPublic != nil else { return nil }
            var draft = self.bench.draft()
            draft.asksForNewLink = true
            guard let record = try self.bench.save(draft).saved else { return "no new link" }
            self.keep(record)
            return record.shortGUID == draft.drawnLink?.text ? nil : "another link"
        }

        private mutating func remakeZone() throws -> String? {
            guard self.draw(6) == 0 else { return nil }
            try self.bench.bench.zones(.delete, ShareBench.zone)
            if self.draw(2) == 0 { try self.bench.bench.finishJobs() }
            try self.bench.bench.zones(.create, ShareBench.zone)
            try self.bench.bench.modify(.create("a"))
            self.model.end()
            return nil
        }

        /// What everybody may do now, asked of the state and of one that remembers nothing.
        mutating func check() throws -> String? {
            var fresh = self.bench
            fresh.bench.state.forget()
            for user in SharePropertyTests.users {
                let permission = self.model.permission(of: user)
                let mayRead = permission != .none
                for (bench, who) in [(self.bench, "the state"), (fresh, "a fresh state")] {
                    if try bench.reads(user) != mayRead {
                        return "\(who) lets \(user) read: not \(mayRead)"
                    }
                    if try (bench.detail(as: ShareBench.user(user)) != nil) != mayRead {
                        return "\(who) tells \(user) of the share: not \(mayRead)"
                    }
                }
                if try self.bench.writes(user) != (permission == .readWrite) {
                    return "\(user) writes: not as \(permission)"
                }
            }
            return try self.checkLinks() ?? self.checkPeople()
        }

        /// A link that ended leads nobody anywhere, the owner neither.
        private func checkLinks() throws -> String? {
            let current = try self.bench.currentLink()
            if (current == nil) != (self.model.isPublic == nil) {
                return "a link: \(current as Any)"
            }
            for link in self.links {
                let found = try self.bench.byLink(link, as: Bench.user) != nil
                if found != (link == current) { return "a link is found: \(found)" }
                let user = SharePropertyTests.users[0]
                let isFor = link == current && self.model.isForLink(user)
                if try (self.bench.byLink(link, as: ShareBench.user(user)) != nil) != isFor {
                    return "a link is for \(user): not \(isFor)"
                }
            }
            return nil
        }

        /// The owner sees everybody, and no row of anybody else is left.
        private func checkPeople() throws -> String? {
            let detail = try self.bench.detail(as: Bench.user)
            if (detail == nil) != (self.model.isPublic == nil) {
                return "a share: \(detail as Any)"
            }
            var seen: [String: Model.Person] = [:]
            for person in detail?.participants.dropFirst() ?? [] {
                let isPublic = person.role == .publicUser
                seen[person.user] = Model.Person(
                    permission: isPublic ? .readOnly : person.permission,
                    hasAccepted: person.status == .accepted, isPublic: isPublic)
            }
            if seen != self.model.people { return "\(seen), not \(self.model.people)" }
            guard let zone = try self.zone() else { return "no zone" }
            let start = Keys.zoneStart(zone.number)
            let rows = try self.bench.bench.rows.view.rows(
                .share, from: start, to: Keys.end(of: start), limit: .max)
            let accepted = self.model.people.values.count(where: \.hasAccepted)
            let invited = self.model.people.count - accepted
            let (shares, memory) = (self.model.isPublic == nil ? 0 : 1, rows.isEmpty ? 0 : 1)
            let expected = memory + shares + self.model.people.count + accepted + invited
            return rows.count == expected ? nil : "\(rows.count) rows, not \(expected)"
        }

        private func zone() throws -> ZoneRow? {
            let view = self.bench.bench.rows.view
            guard let database = try StoredRows.database(self.bench.database, over: view) else {
                return nil
            }
            return try StoredRows.zone(ShareBench.zone, in: database.number, over: view)
        }
    }

    /// - Returns: the first step whose state differs from the model, and how.
    private static func live(_ seed: UInt64, bugs: PlantedBugs = PlantedBugs()) throws
        -> (problem: String?, acceptedCount: Int)
    {
        var life = Life(seed, bugs: bugs)
        for step in 0..<Self.stepCount {
            if let problem = try life.step() ?? life.check() {
                return ("seed \(seed) step \(step): \(problem)", life.acceptedCount)
            }
        }
        return (nil, life.acceptedCount)
    }

    @Test func `everybody may do what the contract says, and nothing else`() throws {
        var acceptedCount = 0
        for seed in 1...Self.seedCount {
            let (problem, count) = try Self.live(seed)
            #expect(problem == nil)
            acceptedCount += count
        }
        #expect(acceptedCount > 10 * Int(Self.seedCount), "only \(acceptedCount) accept")
    }

    @Test(
        .enabled(if: PlantedBugs.isPossible),
        arguments: [PlantedBug.removedParticipantReads, .linkOutlivesShare])
    func `a planted bug is found`(bug: PlantedBug) throws {
        #if STRATUS_PLANTED
            let isFound = try (1...5).contains { seed in
                try Self.live(seed, bugs: PlantedBugs([bug])).problem != nil
            }
            #expect(isFound)
        #endif
    }
}
