import StratusCommandLine
import StratusHTTP

/// What `stratusctl user show` and `user delete` print for people.
enum UserFacts {
    static func account(_ user: JSONValue) -> String {
        var table = TextTable([.init(""), .init("")])
        func row(_ title: String, _ value: String?) {
            if let value, !value.isEmpty { table.append([title, value]) }
        }
        row("e-mail", user["email"]?.string)
        let names = ["givenName", "familyName"].compactMap { user[$0]?.string }
        row("name", names.filter { !$0.isEmpty }.joined(separator: " "))
        row("id", user["id"]?.string)
        row("created", user["created"]?.string)
        row("state", user["isDisabled"]?.bool == true ? "disabled" : "active")
        row("password", user["hasPassword"]?.bool == true ? "set" : "none yet")
        row("may be found", user["isDiscoverable"]?.bool == true ? "yes" : "no")
        return [
            table.write(),
            Self.table(
                ClusterFacts.array(user, "containers"),
                [
                    ("CONTAINER", "container"), ("ENVIRONMENT", "environment"),
                    ("RECORD NAME", "userRecordName"),
                ]),
            Self.table(
                ClusterFacts.array(user, "sessions").filter { $0["isOpen"]?.bool == true },
                [
                    ("SESSION IN", "container"), ("ENVIRONMENT", "environment"),
                    ("OPENED", "opened"), ("BROWSER", "agent"),
                ]),
        ].compactMap { $0 }.joined(separator: "\n")
    }

    /// - Parameter hasLeft: what leaves the disks after a while has left all of them.
    static func receipt(_ answer: JSONValue, hasLeft: Bool = false) -> String {
        func count(_ key: String) -> String { answer[key]?.numberText ?? "0" }
        var text = "erased: \(count("records")) records and \(count("zones")) zones "
        text += "in \(count("containers")) containers\n"
        if !hasLeft, let leaving = answer["leaving"]?.string {
            text += "leaves the nodes' disks by itself:\n  \(leaving)\n"
        }
        text += "not removed by this:\n"
        for line in ClusterFacts.array(answer, "outstanding").compactMap(\.string) {
            text += "  \(line)\n"
        }
        return text
    }

    /// Nil where there is nothing to show.
    private static func table(_ rows: [JSONValue], _ columns: [(title: String, key: String)])
        -> String?
    {
        if rows.isEmpty { return nil }
        var table = TextTable(columns.map { .init($0.title) })
        for row in rows { table.append(columns.map { row[$0.key]?.string ?? "" }) }
        return table.write()
    }
}
