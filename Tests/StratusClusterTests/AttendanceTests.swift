import StratusCluster
import StratusModel
import Testing

/// Who is told of a change.
@Suite struct AttendanceTests {
    private static let start = MonotonicTime(nanoseconds: 1)

    @Test func `those whose polls wait for a database are told, until they say otherwise`() {
        var attendance = Attendance()
        attendance.heard(from: NodeID(3), [1, 2], isWhole: true, at: Self.start)
        attendance.heard(from: NodeID(2), [2], isWhole: false, at: Self.start)
        #expect(attendance.listeners(of: 1, at: Self.start) == [NodeID(3)])
        #expect(attendance.listeners(of: 2, at: Self.start) == [NodeID(2), NodeID(3)])
        attendance.heard(from: NodeID(3), [4], isWhole: false, at: Self.start)
        #expect(attendance.listeners(of: 1, at: Self.start) == [NodeID(3)])
        attendance.heard(from: NodeID(3), [4], isWhole: true, at: Self.start)
        #expect(attendance.listeners(of: 1, at: Self.start) == [])
        #expect(attendance.listeners(of: 4, at: Self.start) == [NodeID(3)])
    }

    @Test func `a node that is silent for long is forgotten, and one that repeats is not`() {
        var attendance = Attendance()
        attendance.heard(from: NodeID(2), [1], isWhole: true, at: Self.start)
        let later = Self.start + Attendance.repeatInterval
        attendance.heard(from: NodeID(3), [1], isWhole: true, at: later)
        #expect(attendance.listeners(of: 1, at: later).count == 2)
        let end = Self.start + Attendance.life + .seconds(1)
        #expect(attendance.listeners(of: 1, at: end) == [NodeID(3)])
        // Two repetitions may be lost.
        #expect(Attendance.repeatInterval * 2 < Attendance.life)
    }

    @Test func `what is kept of one node is bounded`() {
        var attendance = Attendance()
        let count = UInt64(Attendance.databaseCountMax)
        attendance.heard(
            from: NodeID(2), Array(0...count), isWhole: true, at: Self.start)
        #expect(attendance.listeners(of: count - 1, at: Self.start) == [NodeID(2)])
        #expect(attendance.listeners(of: count, at: Self.start) == [])
    }

    @Test func `a database has the same name at every node, for ever`() {
        let container = ContainerReference(container: "iCloud.a", environment: .production)
        let own = DatabaseID(container: container, scope: .private, owner: "_u")
        #expect(Attendance.name(of: own) == 0xBFC2A8EC722ED386)
        let open = DatabaseID(container: container, scope: .public, owner: "")
        #expect(Attendance.name(of: own) != Attendance.name(of: open))
        // A part has a name of its own: its events are counted apart.
        var names: Set<UInt64> = []
        for database in [own, open] {
            var part = database
            for bucket in [nil, Bucket(0, of: 2), Bucket(1, of: 2)] {
                part.bucket = bucket
                names.insert(Attendance.name(of: part))
            }
        }
        #expect(names.count == 6)
    }

    @Test func `the questions, version 1, read and write as ever`() throws {
        let attend = NodeQuestion.attend(node: NodeID(7), databases: [1, 0x0102], isWhole: true)
        #expect(
            attend.encoded() == [
                1, 8, 7, 0, 0, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0,
            ])
        let stirred = NodeQuestion.stirred([5])
        #expect(stirred.encoded() == [1, 9, 1, 5, 0, 0, 0, 0, 0, 0, 0])
        for question in [attend, stirred] {
            #expect(try NodeQuestion(decoding: question.encoded()) == question)
            #expect(question.encoded()[1] == question.number)
        }
    }
}
