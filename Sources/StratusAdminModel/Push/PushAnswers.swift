import StratusModel

/// What a node sends.
package struct PushStatusAnswer: NamedMembers {
    package struct Lane: NamedMembers, TabularRow {
        package var lane = ""
        package var state = ""
        package var waiting: Int64 = 0
        package var underWay: Int64 = 0
        package var answers: Int64 = 0
        package var trouble: String?

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("lane", &self.lane)
            form.member("state", &self.state)
            form.member("waiting", &self.waiting)
            form.member("underWay", &self.underWay)
            form.member("answers", &self.answers)
            form.member("trouble", &self.trouble)
        }

        package static var columns: [AnswerColumn<Self>] {
            [
                .init("LANE", \.lane),
                .init("STATE", \.state),
                .init("WAITING", alignsRight: true, \.waiting),
                .init("UNDER WAY", alignsRight: true, \.underWay),
                .init("ANSWERS", alignsRight: true, \.answers),
                .init("TROUBLE", \.trouble),
            ]
        }
    }

    package var active: Int64 = 0
    package var parked: Int64 = 0
    package var lanes: [Lane] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("active", &self.active)
        form.member("parked", &self.parked)
        form.member("lanes", &self.lanes)
    }
}

/// One change's way to one device.
package struct PushTraceRow: ListedRow, TabularRow {
    package static let list: StaticString = "pushes"

    package var event: Int64 = 0
    package var database = ""
    package var zone = ""
    package var record: String?
    package var subscription = ""
    package var user = ""
    package var device = ""
    package var lane = ""
    package var saved: String?
    package var matched = ""
    package var sent: String?
    package var sendings: Int64 = 0
    package var verdict: String?
    package var judged: String?
    package var settled: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("event", &self.event)
        form.member("database", &self.database)
        form.member("zone", &self.zone)
        form.member("record", &self.record)
        form.member("subscription", &self.subscription)
        form.member("user", &self.user)
        form.member("device", &self.device)
        form.member("lane", &self.lane)
        form.member("saved", &self.saved)
        form.member("matched", &self.matched)
        form.member("sent", &self.sent)
        form.member("sendings", &self.sendings)
        form.member("verdict", &self.verdict)
        form.member("judged", &self.judged)
        form.member("settled", &self.settled)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("EVENT", \.event),
            .init("RECORD", \.record),
            .init("SUBSCRIPTION", \.subscription),
            .init("USER", \.user),
            .init("DEVICE", \.device),
            .init("SAVED", \.saved),
            .init("MATCHED", \.matched),
            .init("SENT", \.sent),
            .init("JUDGED", \.judged),
            .init("VERDICT", \.verdict),
        ]
    }
}

/// A device of a user, never its address.
package struct PushDeviceRow: ListedRow, TabularRow {
    package static let list: StaticString = "devices"

    package var device = ""
    package var kind = ""
    package var apnsEnvironment: String?
    package var topic: String?
    package var registered: String?
    package var expires: String?
    package var moved = ""
    package var behind: Int64 = 0
    /// Why it would be told nothing.
    package var trouble: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("device", &self.device)
        form.member("kind", &self.kind)
        form.member("apnsEnvironment", &self.apnsEnvironment)
        form.member("topic", &self.topic)
        form.member("registered", &self.registered)
        form.member("expires", &self.expires)
        form.member("moved", &self.moved)
        form.member("behind", &self.behind)
        form.member("trouble", &self.trouble)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("DEVICE", \.device),
            .init("KIND", \.kind),
            .init("TOPIC", \.topic),
            .init("APNS", \.apnsEnvironment),
            .init("REGISTERED", \.registered),
            .init("MOVED", \.moved),
            .init("BEHIND", \.behind),
            .init("TROUBLE", \.trouble),
        ]
    }
}

/// A text that goes to one device.
package struct PushSendBody: NamedMembers {
    package var user: String?
    package var alert: String?
    package var device: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("user", &self.user)
        form.member("alert", &self.alert)
        form.member("device", &self.device)
    }
}

/// What a provider said to a text.
package struct PushSendAnswer: NamedMembers {
    package var device = ""
    package var lane = ""
    package var isAccepted = false
    package var answer = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("device", &self.device)
        form.member("lane", &self.lane)
        form.member("accepted", &self.isAccepted)
        form.member("answer", &self.answer)
    }
}

/// Why a change would reach a user's devices, or not.
package struct PushExplanationAnswer: NamedMembers {
    package struct Subscription: NamedMembers, TabularRow {
        package var subscription = ""
        package var kind = ""
        package var fires = false
        package var why = ""

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("subscription", &self.subscription)
            form.member("kind", &self.kind)
            form.member("fires", &self.fires)
            form.member("why", &self.why)
        }

        package static var columns: [AnswerColumn<Self>] {
            [
                .init("SUBSCRIPTION", \.subscription),
                .init("KIND", \.kind),
                .init("FIRES", \.fires),
                .init("WHY", \.why),
            ]
        }
    }

    package var reaches = false
    package var recordFound = false
    package var subscriptions: [Subscription] = []
    package var isCut = false
    package var devices: [PushDeviceRow] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("reaches", &self.reaches)
        form.member("recordFound", &self.recordFound)
        form.member("subscriptions", &self.subscriptions)
        form.member("cut", &self.isCut)
        form.member("devices", &self.devices)
    }
}
