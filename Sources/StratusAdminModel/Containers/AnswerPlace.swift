import StratusHTTP
import StratusModel

/// The container and the environment that a command asks or changes.
package struct AnswerPlace: Sendable, Equatable {
    package var container: String
    package var environment: String

    package init(container: String, environment: String) {
        self.container = container
        self.environment = environment
    }

    /// Said beside what the command prints for people.
    package var remark: String {
        "container \(self.container), environment \(self.environment)\n"
    }

    /// An answer for scripts, with container and environment as its first members where it has none.
    package func stamp(_ json: String) -> String {
        guard json.first == "{", let document = try? JSONDocument(parsing: Bytes(json.utf8)),
            document.root["environment"] == nil
        else { return json }
        let members = PlaceMembers {
            $0.container = document.root["container"] == nil ? self.container : nil
            $0.environment = self.environment
        }
        let place = String(decoding: members.json.dropLast(), as: UTF8.self)
        let rest = json.dropFirst()
        return place + (rest.first == "}" ? "" : ",") + rest
    }
}

private struct PlaceMembers: NamedMembers {
    var container: String?
    var environment = ""

    mutating func lay(in form: inout NamedForm) {
        form.member("container", &self.container)
        form.member("environment", &self.environment)
    }
}
