import StratusCommandLine
import StratusModel

/// An entry of `cluster.peers` or `cluster.join`: `NAME@HOST:PORT`.
package struct PeerPlace: Sendable, Equatable {
    package var name: String
    package var host: String
    package var port: UInt16

    /// Nil for anything else.
    package init?(_ text: String) {
        guard let at = text.firstIndex(of: "@") else { return nil }
        let name = String(text[..<at])
        guard NodeName.isName(name),
            case .tcp(let host, let port) = ListenAddress(String(text[text.index(after: at)...])),
            port > 0
        else { return nil }
        (self.name, self.host, self.port) = (name, host, port)
    }
}
