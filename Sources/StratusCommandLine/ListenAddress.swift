/// The address to listen on or connect to: a host and a port, or a Unix socket.
package enum ListenAddress: Sendable, Hashable, CustomStringConvertible {
    /// The host without brackets. Port 0 lets the system choose when listening.
    case tcp(host: String, port: UInt16)
    case unix(path: String)

    /// `HOST:PORT`, `[V6]:PORT` or `unix:PATH`; nil for anything else.
    package init?(_ text: String) {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst("unix:".count))
            // The system's limit, its terminating zero not counted.
            guard (1...107).contains(path.utf8.count) else { return nil }
            self = .unix(path: path)
            return
        }
        guard let colon = text.lastIndex(of: ":") else { return nil }
        let digits = text[text.index(after: colon)...]
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = UInt16(digits)
        else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
            guard host.contains(":") else { return nil }
        } else if host.contains(":") {
            return nil
        }
        guard !host.isEmpty, !host.contains(where: { $0 == "/" || $0 == " " || $0 == "[" }) else {
            return nil
        }
        self = .tcp(host: String(host), port: port)
    }

    package var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}
