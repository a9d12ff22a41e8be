import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// Devices of push providers as followers of a database's news.
@Suite struct DeviceFollowerTests {
    private typealias Own = SubscriptionBench

    private static func token(_ number: UInt8) -> Bytes { Bytes(repeating: number, count: 16) }

    private func waiting(
        _ own: Own, after: Bytes? = nil, limit: UInt32 = 300
    ) throws -> WaitingDevices {
        let ask = WaitingDevicesAsk {
            $0.after = after
            $0.limit = limit
        }
        return try own.bench.ask(ask, as: Bench.system).get()
    }

    @Test func `a device waits from the first event it has not been told until it is`() throws {
        var own = try Own()
        try own.modify(.create(Own.query("q")))
        try own.bench.modify(.create("before"))
        try own.follow(token: Self.token(1), as: .device)
        #expect(try self.waiting(own).followers == [])
        try own.bench.modify(.create("a"), .create("b"))
        let last = try #require(try self.waiting(own).followers.first)
        #expect(
            last
                == WaitingDevices.Follower {
                    $0.database = Bench.privateDatabase
                    $0.subscriber = Bench.owner
                    $0.token = Self.token(1)
                    $0.through = last.through
                })
        // Nothing that it has not seen is skipped, and nothing is told to a poll token of its name.
        #expect(try own.news(token: Self.token(1)).follower == nil)
        for name in ["a", "b"] {
            #expect(try !self.waiting(own).followers.isEmpty)
            let news = try own.news(token: Self.token(1), as: .device)
            #expect(news.hit.map { Own.text($0) } == "q 1 Shelves/\(name)")
            try own.settle(news, token: Self.token(1), as: .device)
        }
        let end = try own.news(token: Self.token(1), as: .device)
        #expect(end.hit == nil && end.position.number == last.through)
    }

    @Test func `a settlement counts once, and only from where the device stood`() throws {
        var own = try Own()
        try own.modify(.create(Own.query("q")))
        try own.follow(token: Self.token(1), as: .device)
        try own.bench.modify(.create("a"), .create("b"))
        let first = try own.news(token: Self.token(1), as: .device)
        try own.settle(first, token: Self.token(1), as: .device)
        // Another leader's, of the same push.
        try own.settle(first, token: Self.token(1), as: .device)
        let second = try own.news(token: Self.token(1), as: .device)
        #expect(second.hit.map { Own.text($0) } == "q 1 Shelves/b")
    }

    @Test func `pages and devices take no room from each other`() throws {
        var own = try Own()
        try own.modify(.create(Own.query("q")))
        try own.follow(token: Self.token(200), as: .device)
        for number in 0..<120 { try own.follow(token: Self.token(UInt8(number))) }
        #expect(try own.news(token: Self.token(200), as: .device).follower != nil)
        for number in 0..<120 {
            try own.follow(token: Self.token(UInt8(number)), as: .device)
        }
        // The hundred that moved last.
        #expect(try own.news(token: Self.token(200), as: .device).follower == nil)
        #expect(try own.news(token: Self.token(119), as: .device).follower != nil)
        #expect(try own.news(token: Self.token(119)).follower != nil)
    }

    @Test func `all of a partition's devices are found, whatever the size of a page`() throws {
        var own = try Own()
        try own.modify(.create(Own.query("q")))
        for number in 1...7 { try own.follow(token: Self.token(UInt8(number)), as: .device) }
        own.database = Bench.publicDatabase
        try own.modify(.create(Own.query("p")))
        for number in 3...5 { try own.follow(token: Self.token(UInt8(number)), as: .device) }
        try own.bench.modify(.create("a"))
        _ = try own.bench.modify(
            in: ZoneID.defaultName, of: Bench.publicDatabase, .create("b"))
        let all = try self.waiting(own).followers
        #expect(all.count == 10)
        for limit in 1...11 as ClosedRange<UInt32> {
            var found: [WaitingDevices.Follower] = []
            var after: Bytes?
            for _ in 0..<20 {
                let page = try self.waiting(own, after: after, limit: limit)
                found += page.followers
                after = page.next
                if after == nil { break }
            }
            #expect(found == all, "pages of \(limit)")
        }
    }

    @Test func `a device that leaves, and one whose owner goes, follow no longer`() throws {
        var own = try Own()
        try own.modify(.create(Own.query("q")))
        for number in 1...2 { try own.follow(token: Self.token(UInt8(number)), as: .device) }
        try own.follow(token: Self.token(1))
        try own.bench.modify(.create("a"))
        let leave = FollowNews(own.database) {
            $0.subscriber = Bench.owner
            $0.token = Self.token(1)
            $0.follower = .device
            $0.step = .leave
        }
        #expect(
            try own.bench.apply(leave, as: Bench.user) == .failure(RequestRefusal(.accessDenied)))
        #expect(try own.move(.device, Self.token(1), .leave) == [.deleted])
        #expect(try own.move(.device, Self.token(1), .leave) == [.notFound])
        #expect(try self.waiting(own).followers.map(\.token) == [Self.token(2)])
        #expect(try own.news(token: Self.token(1)).follower != nil)
        try own.move(.device, Self.token(1), .forget)
        #expect(try self.waiting(own).followers == [])
    }

    @Test func `nobody but Stratus itself asks which devices wait`() throws {
        let own = try Own()
        for principal in [Bench.user, Principal(kind: .serverKey)] {
            let answer = try own.bench.ask(WaitingDevicesAsk(), as: principal)
            #expect(answer == .failure(RequestRefusal(.accessDenied)))
        }
    }

    @Test func `the row of a device is laid out as ever`() throws {
        var own = try Own()
        try own.follow(token: Bytes(1...16), as: .device)
        let bytes = own.bench.rows.text([.subscription])
        let rows = GoldenTests.hexadecimal(bytes)
        let golden = try GoldenTests.golden("rows-device-follower-1", now: bytes)
        #expect(rows == golden, "now \(rows)")
    }
}
