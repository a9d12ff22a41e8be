import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// Every format of sharing, as it is written.
enum ShareGoldens {
    private static let database = Bench.privateDatabase
    static let link = ShareLink(drawn: 1 << 100 | 7, part: 3, owner: 300 << 64)
    private static let name = ShownName {
        $0.given = "Ada"
        $0.family = "Moe"
    }
    private static let version = ShareVersion {
        $0.baseTag = 1 << 40
        $0.number = 300
    }
    private static let note = SharedZoneNote {
        $0.zone = "Shelves"
        $0.incarnation = ZoneIncarnation(0x0102_0304_0506_0708)
        $0.version = Self.version
        $0.state = .left
    }
    private static let zoneName = SharedZoneName {
        $0.owner = Bench.owner
        $0.zone = "Shelves"
    }

    static let samples: [TypedGolden] =
        Self.commands + Self.outcomes + Self.queries + Self.answers

    // MARK: Operations

    private static let commands = [
        TypedGolden.command(
            "command-join-share-1",
            JoinShare(Self.database) {
                $0.link = Self.link
                $0.drawnID = 9
                $0.name = Self.name
                $0.deviceID = "2"
                $0.token = "app"
            }),
        TypedGolden.command(
            "command-leave-shares-1",
            LeaveShares(Self.database) {
                $0.zone = "Shelves"
                $0.deviceID = "2"
                $0.token = "app"
            }),
        TypedGolden.command(
            "command-note-shared-zone-1",
            NoteSharedZone(Self.database) {
                $0.owner = "_other"
                $0.note = Self.note
            }),
    ]

    private static let outcomes = [
        TypedGolden.outcome(
            "outcome-joined-1", of: JoinShare.self, JoinedShare { $0.note = Self.note }),
        TypedGolden.outcome(
            "outcome-joined-2", of: JoinShare.self, JoinedShare { $0.isOwner = true }),
        TypedGolden.outcome("outcome-left-1", of: LeaveShares.self, Self.note),
        TypedGolden.outcome(
            "outcome-noted-1", of: NoteSharedZone.self, NotedSharedZone { $0.isNews = true }),
    ]

    /// A save of a share that says all there is to say, and one that says nothing.
    static let drafts = [
        ShareDraft(),
        ShareDraft {
            $0.root = ShareDraft.Root {
                $0.recordName = "a"
                $0.changeTag = "z"
            }
            $0.publicPermission = .readWrite
            $0.statesInvitations = true
            $0.invitations = [
                ShareInvitation {
                    $0.participantID = 1 << 127
                    $0.drawnID = 5
                    $0.identity = .address("Reader@Example.org", hash: Bytes(1...32))
                    $0.permission = .readOnly
                    $0.role = .user
                },
                ShareInvitation {
                    $0.drawnID = 6
                    $0.identity = .user("_reader")
                },
                ShareInvitation {
                    $0.drawnID = 7
                    $0.identity = .phone("+44 20")
                    $0.isRemoved = true
                },
            ]
            $0.asksForNewLink = true
            $0.drawnLink = Self.link
            $0.drawnOwnerID = 8
            $0.ownerName = Self.name
            $0.token = "app"
        },
    ]

    // MARK: Questions

    private static let queries = [
        TypedGolden.query(
            "query-share-by-link-1", ShareByLinkAsk(Self.database) { $0.link = Self.link }),
        TypedGolden.query(
            "query-share-detail-1", ShareDetailAsk(Self.database) { $0.zone = "Shelves" }),
        TypedGolden.query(
            "query-shared-zones-1", SharedZonesAsk(Self.database) { $0.limit = 200 }),
        TypedGolden.query(
            "query-shared-zones-2",
            SharedZonesAsk(Self.database) {
                $0.after = Self.zoneName
                $0.limit = 1
            }),
    ]

    private static let participant = ShareParticipant {
        $0.id = 5
        $0.user = "_reader"
        $0.identity = .address("Reader@Example.org", hash: Bytes(1...32))
        $0.role = .publicUser
        $0.status = .accepted
        $0.permission = .readWrite
        $0.name = Self.name
        $0.addedMilliseconds = 1_700_000_000_000
    }
    private static let detail = ShareDetail {
        $0.reader = .owner
        $0.recordName = ShareNames.zoneWide
        $0.rootName = "a"
        $0.link = Self.link
        $0.publicPermission = .readOnly
        $0.participants = [Self.participant, ShareParticipant()]
        $0.publicCount = 300
        $0.caller = Self.participant
    }
    private static let shared = SharedLink {
        $0.zone = "Shelves"
        $0.detail = Self.detail
        $0.records = [GoldenTests.record]
    }
    private static let zones = SharedZones {
        $0.zones = [
            SharedZones.Zone {
                $0.name = Self.zoneName
                $0.incarnation = ZoneIncarnation(7)
                $0.turn = 300
            }
        ]
        $0.next = Self.zoneName
    }

    private static let answers = [
        TypedGolden.answer("answer-share-by-link-1", to: ShareByLinkAsk.self, nil),
        TypedGolden.answer("answer-share-by-link-2", to: ShareByLinkAsk.self, Self.shared),
        TypedGolden.answer("answer-share-detail-1", to: ShareDetailAsk.self, nil),
        TypedGolden.answer("answer-share-detail-2", to: ShareDetailAsk.self, Self.detail),
        TypedGolden.answer("answer-shared-zones-1", to: SharedZonesAsk.self, SharedZones()),
        TypedGolden.answer("answer-shared-zones-2", to: SharedZonesAsk.self, Self.zones),
    ]
}

@Suite struct ShareGoldenTests {
    @Test func `a save of a share is written and read as ever`() throws {
        for (number, draft) in ShareGoldens.drafts.enumerated() {
            let command = RecordCommand.modifyRecords(
                ModifyRecords(
                    database: Bench.privateDatabase, zone: "Shelves",
                    drawnIncarnation: ZoneIncarnation(7),
                    operations: [
                        RecordOperation(
                            .update, recordName: ShareNames.zoneWide, changeTag: "1",
                            share: draft)
                    ]))
            let bytes = command.encoded()
            let golden = try GoldenTests.golden("command-modify-share-\(number + 1)", now: bytes)
            #expect(GoldenTests.hexadecimal(bytes) == golden)
            let read = try RecordCommand(
                decoding: GoldenTests.bytes(golden), container: Bench.container)
            #expect(read == command)
        }
    }

    /// The rows that sharing leaves, so that no key or row changes its form unseen.
    @Test func `the rows of sharing are laid out as ever`() throws {
        var bench = ShareBench()
        try bench.share(people: [.user("_reader"), .address("A@b", hash: Bytes(1...32))])
        try bench.join("_reader")
        try bench.note("_reader")
        var writer = ByteWriter()
        for table in [Table.share, .zone] {
            try bench.bench.rows.scan(
                table, from: Bytes().span.bytes, to: Bytes().span.bytes, descending: false
            ) { key, row in
                writer.write(table.rawValue)
                writer.write(prefixed: Bytes(copying: key))
                writer.write(prefixed: Bytes(copying: row))
                return .next
            }
        }
        let rows = GoldenTests.hexadecimal(writer.bytes)
        #expect(rows == (try GoldenTests.golden("rows-shares-1", now: writer.bytes)))
    }
}
