import StratusHTTP
import StratusModel

/// A zone as a request names it.
struct ZoneAddress: Sendable, Hashable {
    var name: String
    /// Nil: the caller.
    var owner: String?

    static let defaultZone = ZoneAddress(name: ZoneID.defaultName, owner: nil)

    init(name: String, owner: String?) {
        self.name = name
        self.owner = owner
    }

    /// A dictionary, or the bare name. `zoneType` is an echo of ours and says nothing.
    init(_ value: JSONValue, key: String) throws(InputRefusal) {
        if let name = value.string {
            self.init(name: name, owner: nil)
            return
        }
        let input = try Input(value, at: key)
        // `ownerName`, the wrong key of one client's older versions, says nothing.
        self.init(
            name: try input.requiredString("zoneName"),
            owner: Self.person(try input.string("ownerRecordName")))
    }

    /// A user's record name, or nil for any of the words clients have for "me".
    private static func person(_ name: String?) -> String? {
        switch name {
        case nil, "", "_defaultOwner", "__defaultOwner__": nil
        case let name: name
        }
    }

    /// The zone meant, in the database that the path names; nil where that database cannot have it.
    func resolved(in scope: DatabaseScope, caller: String) -> ZoneID? {
        switch scope {
        // The public database has no owner, whatever a client repeats from elsewhere.
        case .public: ZoneID(name: self.name, owner: "")
        case .private:
            self.owner == nil || self.owner == caller
                ? ZoneID(name: self.name, owner: caller) : nil
        // A shared zone is somebody else's; without the owner's name it is nobody's.
        case .shared: self.owner.map { ZoneID(name: self.name, owner: $0) }
        }
    }
}

extension JSONWriter {
    /// A zone's dictionary, always with all three keys.
    mutating func writeZoneID(_ zone: ZoneID) {
        self.beginObject()
        self.member(known: "zoneName", zone.name)
        self.member(known: "ownerRecordName", zone.owner.isEmpty ? "_defaultOwner" : zone.owner)
        self.member(known: "zoneType", zone.isDefault ? "DEFAULT_ZONE" : "REGULAR_CUSTOM_ZONE")
        self.endObject()
    }
}
