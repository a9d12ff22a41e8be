import StratusHTTP2
package import StratusProcess
import StratusSQLite

/// The versions of what the node is made of: the libraries of every program, the database, and
/// HTTP/2.
package enum NodeVersions {
    /// Name and version of every C library in use, as the running process finds them.
    package static var libraries: [(name: String, version: String)] { Self.text.libraries }

    /// Why a node cannot run with these libraries; empty when it can.
    package static var problems: [String] { Self.text.problems }

    /// The text that `stratus --version` prints.
    package static var text: VersionText {
        var text = Versions.common
        text.libraries.insert(("SQLite", SQLiteLibrary.version), at: 0)
        text.libraries.append(("nghttp2", Nghttp2Library.version))
        text.knownFlaws += SQLiteLibrary.knownFlaws.map { ("SQLite", $0) }
        text.problems = SQLiteLibrary.problems + text.problems + Nghttp2Library.problems
        return text
    }
}
