import StratusModel
import Testing

@testable import StratusRuntime

/// Who gets a place where there are too few, against a list of all places.
@Suite struct PlacesTests {
    private static func container(_ number: Int) -> ContainerReference {
        ContainerReference(container: "iCloud.\(number)", environment: .production)
    }

    /// A model: every place in a list, the oldest first.
    private struct Model {
        struct Place {
            let number: UInt64
            let holder: PlaceHolder
            let size: Int
        }

        var places: [Place] = []

        var size: Int { self.places.reduce(0) { $0 + $1.size } }

        func size(where fits: (PlaceHolder) -> Bool) -> Int {
            self.places.filter { fits($0.holder) }.reduce(0) { $0 + $1.size }
        }

        func count<Key: Hashable>(of key: (PlaceHolder) -> Key, _ newcomer: PlaceHolder) -> Int {
            Set(self.places.map { key($0.holder) } + [key(newcomer)]).count
        }

        /// The share of the newcomer's container.
        func share(of holder: PlaceHolder, _ bounds: PlaceBounds) -> Int {
            bounds.total / max(bounds.containerPart, self.count(of: \.container, holder))
        }

        /// Whether a newcomer stays within its share, as the page says it; and whether its places
        /// come from other containers.
        func isBelow(
            _ holder: PlaceHolder, _ size: Int, _ bounds: PlaceBounds
        ) -> (isBelow: Bool, takesFromOthers: Bool) {
            guard self.size(where: { $0.name == holder.name }) + size <= bounds.share else {
                return (false, false)
            }
            let share = self.share(of: holder, bounds)
            let isOwn = { (other: PlaceHolder) in other.container == holder.container }
            if self.size(where: isOwn) + size <= share { return (true, true) }
            var own = self
            own.places.removeAll { $0.holder.container != holder.container }
            guard !own.places.isEmpty else { return (false, false) }
            return (
                own.size(where: { $0 == holder }) + size
                    <= own.size / own.count(of: \.self, holder), false
            )
        }

        /// The oldest place of whoever has most, of containers or within one. Of two who have as
        /// much, the one whose oldest place since it last had none is older.
        func isFurthest(
            _ place: Place, takesFromOthers: Bool, for holder: PlaceHolder
        ) -> Bool {
            let sizes = Dictionary(grouping: self.places, by: \.holder.container)
                .mapValues { $0.reduce(0) { $0 + $1.size } }
            let container = place.holder.container
            if takesFromOthers {
                if sizes[container] != sizes.values.max() { return false }
            } else if container != holder.container {
                return false
            }
            let users = Dictionary(
                grouping: self.places.filter { $0.holder.container == container }, by: \.holder
            ).mapValues { $0.reduce(0) { $0 + $1.size } }
            return users[place.holder] == users.values.max()
                && self.places.first { $0.holder == place.holder }?.number == place.number
        }
    }

    @Test(arguments: 0..<40)
    func `whoever is below the share is never refused, and the furthest above gives way`(
        _ round: Int
    ) throws {
        let seed = UInt64.random(in: 0..<1_000_000)
        var random = SeededGenerator(seed: seed)
        let bounds = PlaceBounds(
            total: Int.random(in: 1...60, using: &random),
            containerPart: Int.random(in: 1...8, using: &random),
            share: Int.random(in: 1...12, using: &random),
            most: Bool.random(using: &random) ? Int.random(in: 12...40, using: &random) : nil)
        let containers = Int.random(in: 1...12, using: &random)
        let users = Int.random(in: 1...6, using: &random)
        let sizeMax = round % 2 == 0 ? 1 : 4
        var (places, again, model) = (Places(), Places(), Model())
        for step in 0..<600 {
            let text: Comment = "seed \(seed), round \(round), step \(step), \(bounds)"
            if Int.random(in: 0..<5, using: &random) == 0, !model.places.isEmpty {
                let left = model.places.remove(
                    at: Int.random(in: 0..<model.places.count, using: &random))
                for _ in 0..<2 { places.leave(left.number) }
                again.leave(left.number)
                #expect(places.size == model.size, text)
                continue
            }
            // The first container asks for most.
            let holder = PlaceHolder(
                Self.container(
                    Bool.random(using: &random) ? 0 : Int.random(in: 0..<containers, using: &random)
                ), "\(Int.random(in: 0..<users, using: &random))")
            let asked = Int.random(in: 1...sizeMax, using: &random)
            let size = min(asked, max(1, model.share(of: holder, bounds)))
            let isTooMuch =
                model.size(where: { $0.name == holder.name }) + size > bounds.most ?? .max
            let (isBelow, takesFromOthers) = model.isBelow(holder, size, bounds)
            let hasRoom = model.size + size <= bounds.total
            do throws(Places.Refusal) {
                let entrance = try places.enter(holder, size: asked, within: bounds)
                #expect(entrance == (try? again.enter(holder, size: asked, within: bounds)), text)
                #expect(!isTooMuch && (hasRoom || isBelow), text)
                #expect(entrance.ended.isEmpty == hasRoom, text)
                for (index, number) in entrance.ended.enumerated() {
                    guard let at = model.places.firstIndex(where: { $0.number == number }) else {
                        Issue.record("\(text): a place that nobody has")
                        return
                    }
                    #expect(model.size + size > bounds.total, "\(text): place \(index)")
                    #expect(
                        model.isFurthest(
                            model.places[at], takesFromOthers: takesFromOthers, for: holder), text)
                    #expect(model.places[at].holder != holder, text)
                    model.places.remove(at: at)
                }
                model.places.append(
                    Model.Place(number: entrance.number, holder: holder, size: size))
            } catch {
                #expect((try? again.enter(holder, size: asked, within: bounds)) == nil, text)
                #expect(error == .most ? isTooMuch : !isTooMuch && !hasRoom && !isBelow, text)
            }
            #expect(places.size == model.size && places.size <= bounds.total, text)
            #expect(places.count == model.places.count, text)
        }
    }

    @Test func `one who has all places gives each container its eighth, and keeps the rest`() throws
    {
        let bounds = PlaceBounds(total: 80, share: 6)
        let attacker = PlaceHolder(Self.container(0), "attacker")
        var places = Places()
        for number in 1...80 {
            #expect(try places.enter(attacker, within: bounds).number == UInt64(number))
        }
        #expect(throws: Places.Refusal.full) { try places.enter(attacker, within: bounds) }
        // A user of another container has 6 of them, its container 10.
        for number in 1...6 {
            let other = PlaceHolder(Self.container(1), "one")
            #expect(try places.enter(other, within: bounds).ended == [UInt64(number)])
        }
        let one = PlaceHolder(Self.container(1), "one")
        #expect(throws: Places.Refusal.full) { try places.enter(one, within: bounds) }
        for user in 0..<4 {
            _ = try places.enter(PlaceHolder(Self.container(1), "\(user)"), within: bounds)
        }
        #expect(places.size(of: Self.container(1)) == 10)
        // Beyond that a user with few takes the place of another of the same container.
        let six = PlaceHolder(Self.container(1), "six")
        let ended = try places.enter(six, within: bounds).ended
        #expect(ended == [81] && places.size(of: one) == 5)
        // Who gave way does not come back by pushing out others.
        #expect(throws: Places.Refusal.full) { try places.enter(attacker, within: bounds) }
        #expect(places.size(of: Self.container(0)) == 70)
    }

    @Test func `of many whose sizes change, who has most is known at once`() {
        let seed = UInt64.random(in: 0..<1_000_000)
        var random = SeededGenerator(seed: seed)
        var (order, sizes) = (LargestFirst<Int>(), [:] as [Int: Int])
        for step in 0..<5_000 {
            let id = Int.random(in: 0..<40, using: &random)
            sizes[id] =
                Int.random(in: 0..<4, using: &random) == 0
                ? nil : Int.random(in: 0..<10, using: &random)
            if let size = sizes[id] {
                order.set(id, UInt64(id), to: size)
            } else {
                order.remove(id)
            }
            let most = sizes.max { ($0.value, $1.key) < ($1.value, $0.key) }
            #expect(order.first == most?.key, "seed \(seed), step \(step)")
        }
    }

    @Test func `addresses of one site are one holder, and proxies are apart from addresses`() {
        let hosts = ["2001:db8:1:2::5", "2001:db8:1:2:ffff::9"]
        #expect(Set(hosts.map(Admission.holder(of:))).count == 1)
        #expect(Admission.holder(of: "2001:db8:1:3::5") != Admission.holder(of: hosts[0]))
        #expect(Admission.holder(of: "192.0.2.1") != Admission.holder(of: "192.0.2.2"))
        #expect(Admission.holder(of: nil).container != Admission.holder(of: hosts[0]).container)
    }

    @Test func `a newcomer of many places is not refused for good`() throws {
        let bounds = PlaceBounds(total: 16, share: 8)
        var places = Places()
        for _ in 0..<16 {
            _ = try places.enter(PlaceHolder(Self.container(0), "most"), within: bounds)
        }
        // An eighth is two.
        let other = PlaceHolder(Self.container(1), "many")
        #expect(try places.enter(other, size: 9, within: bounds).ended == [1, 2])
        #expect(places.size(of: other) == 2)
    }

    @Test func `in the only container there is, users are protected from one another`() throws {
        let bounds = PlaceBounds(total: 100, share: 64)
        let attacker = PlaceHolder(Self.container(0), "attacker")
        var places = Places()
        for _ in 0..<100 { _ = try places.enter(attacker, within: bounds) }
        for user in 1...40 {
            let other = PlaceHolder(Self.container(0), "\(user)")
            #expect(try places.enter(other, within: bounds).ended == [UInt64(user)])
        }
        #expect(places.size(of: attacker) == 60)
    }

    @Test func `among more containers than eight the shares are smaller, and nobody pushes twice`()
        throws
    {
        let bounds = PlaceBounds(total: 100, share: 64)
        var places = Places()
        for container in 0..<8 {
            for _ in 0..<(container < 4 ? 13 : 12) {
                _ = try places.enter(
                    PlaceHolder(Self.container(container), "a\(container)"), within: bounds)
            }
        }
        // The ninth has a ninth of them, and ends with what the others have.
        let ninth = PlaceHolder(Self.container(9), "b")
        for _ in 0..<11 { _ = try places.enter(ninth, within: bounds) }
        #expect(throws: Places.Refusal.full) { try places.enter(ninth, within: bounds) }
        #expect((0..<8).allSatisfy { places.size(of: Self.container($0)) >= 11 })
    }

    @Test func `what a reload takes away nobody loses at once`() throws {
        var places = Places()
        let (one, two) = (
            PlaceHolder(Self.container(0), "one"), PlaceHolder(Self.container(1), "two")
        )
        for _ in 0..<8 {
            _ = try places.enter(one, within: PlaceBounds(total: 8, share: 2))
        }
        let fewer = PlaceBounds(total: 4, containerPart: 2, share: 2)
        #expect(throws: Places.Refusal.full) { try places.enter(one, within: fewer) }
        #expect(try places.enter(two, size: 2, within: fewer).ended == [1, 2])
        #expect(places.size == 8)
        #expect(throws: Places.Refusal.full) { try places.enter(two, within: fewer) }
        let none = PlaceBounds(total: 0, share: 2)
        #expect(throws: Places.Refusal.full) { try places.enter(two, within: none) }
    }
}
