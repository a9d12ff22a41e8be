import StratusCoding
import StratusDoubles
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// Shares of whole zones: who may make and change them, who comes and goes.
@Suite struct ShareTests {
    private static let reader = ShareBench.user("_reader")

    // MARK: Making

    @Test func `a share is a record with a link, and its owner is in it`() throws {
        var bench = ShareBench()
        try bench.share(people: [.user("_reader")])
        let record = try #require(try bench.record())
        #expect(record.type == ShareNames.type && record.shortGUID?.utf8.count == 45)
        let detail = try #require(try bench.detail(as: Bench.user))
        #expect(detail.reader == .owner && detail.caller.role == .owner)
        #expect(detail.participants.map(\.role) == [.owner, .user])
        #expect(detail.participants.map(\.status) == [.accepted, .invited])
        #expect(detail.participants.map(\.user) == [Bench.owner, "_reader"])
        #expect(detail.link.text == record.shortGUID && detail.publicPermission == .none)
        let changes = try bench.bench.changes().changes.map(\.name)
        #expect(changes == ["a", ShareNames.zoneWide])
    }

    @Test func `a share that cannot be is refused, and nothing is stored`() throws {
        var bench = ShareBench()
        try bench.bench.modify(in: ZoneID.defaultName, .create("b"))
        let before = bench.bench.rows.contents
        func refusal(
            _ name: String = ShareNames.zoneWide, type: String? = ShareNames.type,
            root: String? = nil, in zone: String = ShareBench.zone,
            of database: DatabaseID = Bench.privateDatabase, link: Bool = true,
            fields: [Field] = [], share: Bool = true, bench: inout ShareBench
        ) throws -> RecordRefusal.Reason? {
            var draft = bench.draft([])
            draft.root = root.map { name in ShareDraft.Root { $0.recordName = name } }
            if !link { draft.drawnLink = nil }
            return try bench.bench.modify(
                in: zone, of: database,
                RecordOperation(
                    .create, recordName: name, recordType: type, fields: fields,
                    share: share ? draft : nil))[0].refusal
        }
        #expect(try refusal("s", bench: &bench) == .shareRootMissing)
        #expect(try refusal(root: "a", bench: &bench) == .shareRootMissing)
        #expect(try refusal("s", root: "a", bench: &bench) == .shareOfRecord)
        #expect(try refusal(type: "Book", bench: &bench) == .shareRootMissing)
        #expect(try refusal(type: "Book", share: false, bench: &bench) == .shareRootMissing)
        #expect(try refusal(share: false, bench: &bench) == .typeReserved)
        #expect(try refusal(in: ZoneID.defaultName, bench: &bench) == .shareRootMissing)
        #expect(
            try refusal(in: ZoneID.defaultName, of: Bench.publicDatabase, bench: &bench)
                == .shareRootMissing)
        #expect(try refusal(link: false, bench: &bench) == .ownerUnnameable)
        #expect(try refusal(fields: [text("title", "x")], bench: &bench) == .fieldUnknown)
        #expect(
            try refusal(fields: [number(ShareNames.title, 1)], bench: &bench)
                == .fieldTypeMismatch)
        #expect(bench.bench.rows.contents == before)
        #expect(
            try refusal(fields: [text(ShareNames.title, "Atlases")], bench: &bench) == nil)
        #expect(try refusal(bench: &bench) == .exists)
    }

    @Test func `the tag of a share is always compared`() throws {
        var bench = ShareBench()
        try bench.share()
        let draft = bench.draft()
        for kind in [.update, .replace, .forceUpdate, .forceReplace] as [RecordOperation.Kind] {
            #expect(try bench.save(draft, kind, tag: "zz").refusal == .tagMismatch)
            let without = RecordOperation(
                kind, recordName: ShareNames.zoneWide, recordType: ShareNames.type, share: draft)
            #expect(try bench.bench.modify(without)[0].refusal == .tagMissing)
            // A client may leave out what the record is.
            let bare = RecordOperation(kind, recordName: ShareNames.zoneWide)
            #expect(try bench.bench.modify(bare)[0].refusal == .tagMissing)
            #expect(try bench.save(draft, kind).saved != nil)
        }
    }

    @Test func `settings that a save does not mention stay`() throws {
        var bench = ShareBench()
        try bench.share(people: [.user("_reader")], permission: .readWrite)
        try bench.save(bench.draft(), .replace, fields: [text(ShareNames.title, "Atlases")])
        let detail = try #require(try bench.detail(as: Bench.user))
        #expect(detail.participants.count == 2 && detail.participants[1].permission == .readWrite)
        #expect(try bench.record()?.fields == [text(ShareNames.title, "Atlases")])
    }

    // MARK: The list of people

    @Test func `a list takes the place of the private people`() throws {
        var bench = ShareBench()
        try bench.share(people: [.user("_reader"), .user("_writer")])
        try bench.join("_reader")
        let detail = try #require(try bench.detail(as: Bench.user))
        var draft = bench.draft([.user("_third"), .user(Bench.owner)])
        draft.invitations.append(
            ShareInvitation {
                $0.participantID = detail.participants.first { $0.user == "_reader" }!.id
                $0.permission = .readWrite
            })
        #expect(try bench.save(draft).saved != nil)
        let after = try #require(try bench.detail(as: Bench.user)).participants
        #expect(Set(after.map(\.user)) == [Bench.owner, "_reader", "_third"])
        #expect(after.first { $0.user == "_reader" }?.status == .accepted)
        #expect(try bench.writes("_reader"))
        #expect(try !bench.join("_writer"))
    }

    @Test func `a list that cannot be is refused`() throws {
        var bench = ShareBench()
        try bench.share()
        func refusal(_ people: [ShareIdentity], _ bench: inout ShareBench) throws
            -> RecordRefusal.Reason?
        { try bench.save(bench.draft(people)).refusal }
        #expect(try refusal([.user("_r"), .user("_r")], &bench) == .participantTwice)
        let hash = Bytes(1...32)
        #expect(
            try refusal([.address("a@b", hash: hash), .address("A@B", hash: hash)], &bench)
                == .participantTwice)
        #expect(try refusal([.user("")], &bench) == .participantUnknown)
        let many = (0..<100).map { ShareIdentity.user("_\($0)") }
        #expect(try refusal(many, &bench) == .tooManyParticipants)
        #expect(try refusal(Array(many.dropLast()), &bench) == nil)
        var draft = bench.draft([.user("_x")])
        draft.invitations[0].role = .administrator
        #expect(try bench.save(draft).refusal == .roleUnavailable)
        draft = bench.draft([.user("_x")])
        draft.publicPermission = .readOnly
        #expect(try bench.save(draft).refusal == .shareIsPublic)
    }

    @Test func `becoming public drops who has not accepted, and becoming private drops all`()
        throws
    {
        var bench = ShareBench()
        try bench.share(people: [.user("_reader"), .user("_late")])
        try bench.join("_reader")
        var draft = bench.draft()
        draft.publicPermission = .readOnly
        #expect(try bench.save(draft).saved != nil)
        #expect(
            try bench.detail(as: Bench.user)?.participants.map(\.user) == [Bench.owner, "_reader"])
        // Now anybody may come by the link.
        #expect(try bench.join("_late") && bench.join("_other"))
        #expect(try bench.detail(as: Bench.user)?.publicCount == 2)
        #expect(try bench.reads("_other") && !bench.writes("_other"))
        draft = bench.draft()
        draft.publicPermission = .readWrite
        #expect(try bench.save(draft).saved != nil)
        #expect(try bench.writes("_other"))
        // A client that sends its list back invites nobody anew.
        let people = try #require(try bench.detail(as: Bench.user)).participants
        draft = bench.draft([])
        draft.publicPermission = SharePermission.none
        draft.invitations = people.map { person in
            ShareInvitation {
                $0.participantID = person.id
                $0.drawnID = person.id ^ 1
                $0.identity = .user(person.user)
            }
        }
        #expect(try bench.save(draft).saved != nil)
        #expect(try bench.detail(as: Bench.user)?.participants.map(\.user) == [Bench.owner])
        for user in ["_reader", "_late", "_other"] { #expect(try !bench.reads(user)) }
    }

    @Test func `public users go by their removal only`() throws {
        var bench = ShareBench()
        try bench.share(isPublic: .readOnly)
        try bench.join("_reader")
        #expect(try bench.save(bench.draft([])).saved != nil)
        #expect(try bench.reads("_reader"))
        var draft = bench.draft([.user("_reader")])
        draft.invitations[0].isRemoved = true
        #expect(try bench.save(draft).saved != nil)
        #expect(try !bench.reads("_reader"))
    }

    @Test func `no more people come by the link than may`() throws {
        var bench = ShareBench()
        try bench.share(isPublic: .readOnly)
        for number in 0..<ShareDecision.publicCountMax { try bench.join("_\(number)") }
        #expect(try !bench.join("_one more"))
        #expect(try bench.join("_0"))
        let detail = try #require(try bench.detail(as: Bench.user))
        #expect(detail.publicCount == 400 && detail.participants.count == 101)
        let meter = ReadMeter()
        var state = bench.bench.state
        let ask = ShareDetailAsk(bench.database) { $0.zone = ShareBench.zone }
        _ = try state.answer(
            Query(kind: .records, body: ask.encoded(as: Bench.user)), within: nil, meter,
            over: bench.bench.rows.view)
        #expect(meter.work.touchCount <= ShareDetailAsk.bound.units)
        _ = try bench.bench.modify(.delete(ShareNames.zoneWide))
        #expect(try !bench.reads("_7"))
        let left = try bench.bench.rows.view.rows(.share, from: [], to: [], limit: .max)
        #expect(left.count == 1, "only what the zone remembers")
    }

    // MARK: Coming and going

    @Test func `who is invited accepts, reads and writes, and leaves`() throws {
        var bench = ShareBench()
        try bench.share(people: [.user("_reader")], permission: .readWrite)
        #expect(try !bench.reads("_reader"))
        let invitation = try #require(try bench.byLink(as: Self.reader))
        #expect(invitation.detail.reader == .invited && invitation.zone == ShareBench.zone)
        #expect(invitation.detail.caller.status == .invited)
        let tag = try bench.record()?.tag
        #expect(try bench.join("_reader") && bench.note("_reader"))
        // The owner hears of it by the share's record.
        #expect(try bench.record()?.tag != tag)
        #expect(try bench.reads("_reader") && bench.writes("_reader"))
        #expect(try bench.listed("_reader") == [ShareBench.zone])
        let accepted = try bench.record()?.tag
        #expect(try bench.join("_reader") && bench.record()?.tag == accepted)
        #expect(try bench.byLink(as: Self.reader)?.detail.caller.status == .accepted)
        #expect(try bench.leave("_reader") && bench.note("_reader"))
        #expect(try !bench.reads("_reader") && !bench.writes("_reader"))
        #expect(try bench.listed("_reader") == [])
        #expect(try !bench.leave("_reader") && !bench.join("_reader"))
        #expect(try bench.bench.lookup("a")?.fields == [text("title", "_reader")])
    }

    @Test func `a participant who deletes the share's record leaves it`() throws {
        var bench = ShareBench()
        try bench.share(people: [.user("_reader")])
        try bench.join("_reader")
        let results = try bench.bench.modify(
            as: Self.reader, .delete(ShareNames.zoneWide), .delete("a"))
        guard case .left(let note) = results[0] else {
            Issue.record("\(results)")
            return
        }
        #expect(note.state == .left && note.zone == ShareBench.zone)
        #expect(results[1].refusal == .notFound)
        #expect(try bench.record() != nil && bench.bench.lookup("a") != nil)
        #expect(try !bench.reads("_reader"))
        #expect(try bench.detail(as: Bench.user)?.participants.count == 1)
    }

    @Test func `the owner needs to accept nothing, and cannot leave`() throws {
        var bench = ShareBench()
        try bench.share()
        let link = try bench.link()
        let join = JoinShare(bench.database) { $0.link = link }
        #expect(try bench.bench.apply(join, as: Bench.user).get().isOwner)
        let leave = LeaveShares(bench.database) { $0.zone = ShareBench.zone }
        #expect(
            try bench.bench.apply(leave, as: Bench.user)
                == .failure(RequestRefusal(.accessDenied)))
    }

    @Test func `an unknown, a foreign and a withdrawn link are alike`() throws {
        var bench = ShareBench()
        try bench.share(people: [.user("_reader")])
        let link = try bench.link()
        let stranger = ShareBench.user("_stranger")
        func reads(_ link: ShareLink) throws -> Int {
            let meter = ReadMeter()
            var state = bench.bench.state
            let ask = ShareByLinkAsk(bench.database) { $0.link = link }
            let answer = try state.answer(
                Query(kind: .records, body: ask.encoded(as: stranger)), within: nil, meter,
                over: bench.bench.rows.view)
            #expect(try ShareByLinkAsk.result(decoding: answer.body) == .success(nil))
            return meter.work.seekCount
        }
        var other = link
        other.drawn ^= 1
        #expect(try reads(link) == 7 && reads(other) == 7)
        #expect(try !bench.join("_stranger", by: link) && !bench.join("_stranger", by: other))
        var draft = bench.draft()
        draft.asksForNewLink = true
        #expect(try bench.save(draft).saved?.shortGUID == draft.drawnLink?.text)
        #expect(try reads(link) == 7 && !bench.join("_reader", by: link))
        #expect(try bench.join("_reader"))
    }

    // MARK: Ending

    @Test func `sharing ends with the record, with the zone and with the database`() throws {
        for end in 0..<3 {
            var bench = ShareBench()
            try bench.share(people: [.user("_reader")], isPublic: nil)
            try bench.join("_reader")
            let link = try bench.link()
            switch end {
            case 0: try bench.bench.modify(.delete(ShareNames.zoneWide))
            case 1: try bench.bench.zones(.delete, ShareBench.zone)
            default:
                _ = try bench.bench.apply(
                    .eraseDatabase(EraseDatabase(database: bench.database)), as: Bench.system)
            }
            #expect(try !bench.reads("_reader"))
            #expect(try bench.byLink(link, as: Self.reader) == nil)
            #expect(try bench.byLink(link, as: Bench.user) == nil)
            if end == 0 {
                #expect(try bench.bench.lookup("a") != nil)
                // A zone that is shared again keeps its link.
                try bench.share()
                #expect(try bench.link() == link)
                continue
            }
            try bench.bench.finishJobs()
            let left = try bench.bench.rows.view.rows(.share, from: [], to: [], limit: .max)
            #expect(left.isEmpty)
            try bench.bench.zones(.create, ShareBench.zone)
            #expect(try !bench.reads("_reader") && bench.byLink(link, as: Self.reader) == nil)
        }
    }

    @Test func `a participant's erasure takes the list`() throws {
        var bench = ShareBench()
        try bench.share(people: [.user("_reader")])
        try bench.join("_reader")
        try bench.note("_reader")
        let home = ShareBench.home(of: "_reader")
        var hasMore = true
        while hasMore {
            let outcome = try bench.bench.apply(
                .eraseDatabase(EraseDatabase(database: home, zoneCount: 1)), as: Bench.system)
            guard case .erased(let progress) = outcome else { break }
            hasMore = progress.hasMore
        }
        #expect(try bench.listed("_reader") == [])
    }

    @Test func `a list takes what is newer only`() throws {
        var bench = ShareBench()
        try bench.share(people: [.user("_reader")])
        try bench.join("_reader")
        let joined = try #require(bench.lastNote(of: "_reader"))
        try bench.leave("_reader")
        let left = try #require(bench.lastNote(of: "_reader"))
        // Of what nobody has heard of there is nothing to take out.
        #expect(try !bench.note("_reader", left))
        #expect(try bench.note("_reader", joined) && !bench.note("_reader", joined))
        #expect(try bench.note("_reader", left) && !bench.note("_reader", joined))
        #expect(try bench.listed("_reader") == [])
    }

    @Test func `a recovery moves versions beyond all that may have been lost`() throws {
        var bench = ShareBench()
        try bench.share(people: [.user("_reader")])
        try bench.join("_reader")
        let before = try #require(bench.lastNote(of: "_reader")).version
        _ = try bench.bench.apply(.recover, as: Bench.system)
        #expect(try bench.reads("_reader") && bench.leave("_reader"))
        let after = try #require(bench.lastNote(of: "_reader")).version
        #expect(after.number >= before.number + 1 << 39 && after.baseTag == before.baseTag)
    }

    // MARK: Costs

    @Test func `an owner pays nothing for sharing where nothing is shared`() throws {
        func seeks(_ bench: ShareBench) throws -> Int {
            let meter = ReadMeter()
            var state = bench.bench.state
            state.forget()
            let lookup = RecordLookup(
                database: bench.database, zone: ShareBench.zone, names: ["a"])
            let query = RecordQuery(principal: Bench.user, .lookup(lookup)).enveloped()
            _ = try state.answer(query, within: nil, meter, over: bench.bench.rows.view)
            return meter.work.seekCount
        }
        var bench = ShareBench()
        #expect(try seeks(bench) == 3, "database, zone and record")
        try bench.share()
        #expect(try seeks(bench) == 3)
    }

    @Test func `a stranger's look-up costs the same in every zone`() throws {
        var bench = ShareBench()
        try bench.share()
        try bench.bench.zones(.create, "Alone")
        for zone in [ShareBench.zone, "Alone", "Missing", ZoneID.defaultName, "_kv"] {
            let meter = ReadMeter()
            var state = bench.bench.state
            let lookup = RecordLookup(database: bench.database, zone: zone, names: ["a"])
            let query = RecordQuery(principal: Self.reader, .lookup(lookup)).enveloped()
            let answer = try state.answer(query, within: nil, meter, over: bench.bench.rows.view)
            #expect(
                try RecordAnswer(decoding: answer.body)
                    == .refused(RequestRefusal(.zoneNotFound, zone)))
            #expect(meter.work.seekCount == 3, "\(zone)")
        }
    }

    @Test func `a zone in a bucket is shared like one at the home`() throws {
        let parts = PrivateDatabase(of: Bench.owner, in: Bench.container, bucketCount: 8)
        var bench = ShareBench(in: parts.part(of: ShareBench.zone))
        try bench.share(people: [.user("_reader")], permission: .readWrite)
        #expect(try bench.join("_reader") && bench.note("_reader"))
        #expect(try bench.reads("_reader") && bench.writes("_reader"))
        #expect(try bench.listed("_reader") == [ShareBench.zone])
        #expect(try bench.leave("_reader") && !bench.reads("_reader"))
    }

    // MARK: Who sees what

    @Test func `each reader is told what they may see, and no address of others`() throws {
        var bench = ShareBench()
        let hash = Bytes(1...32)
        try bench.share(
            people: [.user("_reader"), .user("_writer"), .address("c@d", hash: hash)])
        try bench.join("_reader")
        let owner = try #require(try bench.detail(as: Bench.user))
        #expect(owner.participants.count == 4)
        #expect(
            owner.participants.contains { $0.identity == .address("c@d", hash: hash) })
        let other = try #require(try bench.detail(as: Self.reader))
        #expect(other.participants.map(\.user) == [Bench.owner, "_reader"])
        #expect(other.participants[0].addedMilliseconds == 0)
        #expect(other.caller.user == "_reader" && other.caller.addedMilliseconds > 0)
        try bench.join("_writer")
        let third = try #require(try bench.detail(as: Self.reader)).participants
        #expect(third.last?.user == "_writer" && third.last?.identity == nil)
        let stranger = ShareBench.user("_stranger")
        #expect(try bench.byLink(as: stranger) == nil && bench.detail(as: stranger) == nil)
        var draft = bench.draft()
        draft.publicPermission = .readOnly
        try bench.save(draft)
        let guest = try #require(try bench.byLink(as: stranger)).detail
        #expect(guest.caller.role == .publicUser && guest.caller.id == 0)
        #expect(guest.participants.map(\.user) == [Bench.owner])
    }
}
