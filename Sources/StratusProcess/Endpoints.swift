package import StratusCommandLine
package import StratusRuntime

/// Converts addresses of a configuration or an option to those of a socket, and back.
package enum Endpoints {
    /// Asks the system's resolver for names; empty when the name is not known.
    package static func addresses(_ address: ListenAddress) async -> [SocketAddress] {
        switch address {
        case .unix(let path): return [.unix(path: path)]
        case .tcp(let host, let port):
            do throws(HTTPClientError) {
                return try await NameLookup.addresses(of: host, port: port)
            } catch { return [] }
        }
    }

    /// How a client writes it. A Unix socket has no URL of its own; `stratusctl` takes `unix:PATH`.
    package static func url(_ address: SocketAddress, isSecure: Bool) -> String {
        switch address {
        case .unix(let path): "unix:\(path)"
        case .ip: (isSecure ? "https://" : "http://") + address.description
        }
    }
}
