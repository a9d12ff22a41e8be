import Glibc
package import StratusCommandLine
package import StratusRuntime

/// From what stands in a configuration to what a socket takes.
package enum AddressResolution {
    package struct Failure: Error, Sendable, CustomStringConvertible {
        package var address: ListenAddress
        package var reason: String
        package var description: String { "'\(self.address)': \(self.reason)" }
    }

    /// Asks the system's resolver for names, which may take as long as it takes: only for the start of a
    /// process, on its main thread. The first address of a name counts.
    package static func resolve(_ address: ListenAddress) throws(Failure) -> SocketAddress {
        switch address {
        case .unix(let path): return .unix(path: path)
        case .tcp(let host, let port):
            var hints = addrinfo()
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
            var found: UnsafeMutablePointer<addrinfo>?
            let code = getaddrinfo(host, nil, &hints, &found)
            defer { if let found { freeaddrinfo(found) } }
            guard code == 0, let first = found?.pointee else {
                throw Failure(
                    address: address,
                    reason: code == 0 ? "no address" : String(cString: gai_strerror(code)))
            }
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            let named = getnameinfo(
                first.ai_addr, first.ai_addrlen, &text, socklen_t(text.count), nil, 0,
                NI_NUMERICHOST)
            guard named == 0 else {
                throw Failure(address: address, reason: String(cString: gai_strerror(named)))
            }
            let numeric = String(
                decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            return .ip(numeric, port: port)
        }
    }

    /// How a client writes it. A Unix socket has no URL of its own: curl and ours take the path.
    package static func url(_ address: SocketAddress, isSecure: Bool) -> String {
        switch address {
        case .unix(let path): "unix:\(path)"
        case .ip: (isSecure ? "https://" : "http://") + address.description
        }
    }
}
