package import StratusModel
package import StratusRuntime
package import StratusTLS

/// The links' outside on a real node: TCP and TLS on one event loop.
package final class SocketLinks: LinkWorld {
    package struct Certificates: Sendable {
        package var server: TLSContextSource
        package var client: @Sendable () -> TLSContext

        package init(server: TLSContextSource, client: @escaping @Sendable () -> TLSContext) {
            self.server = server
            self.client = client
        }
    }

    private let loop: EventLoop
    private let certificates: Certificates

    package init(on loop: EventLoop, certificates: Certificates) {
        self.loop = loop
        self.certificates = certificates
    }

    /// Hands `links` every connection that comes, until they stop.
    ///
    /// - Returns: the address, with the port that the system chose.
    package func listen(on address: SocketAddress, for links: PeerLinks)
        async throws(SocketError) -> SocketAddress
    {
        let certificates = self.certificates
        let result: Result<SocketAddress, SocketError> = await self.loop.run { [loop] in
            do throws(SocketError) {
                let listener = try ByteListener(on: address, loop: loop) { [weak links] seed in
                    links?.accept(SocketSeed(seed: seed, certificates: certificates))
                }
                links.begin(with: listener)
                return .success(listener.address ?? address)
            } catch { return .failure(error) }
        }
        return try result.get()
    }

    // MARK: LinkWorld

    package var now: MonotonicTime { self.loop.now }

    package func schedule(at time: MonotonicTime, _ action: @escaping () -> Void) {
        _ = self.loop.schedule(at: time, action)
    }

    package func submit(_ block: @escaping @Sendable () -> Void) { self.loop.submit(block) }

    package func perform(_ block: @escaping @Sendable () -> Void) { self.loop.perform(block) }

    package func connect(
        to peer: PeerAddress, within patience: Duration, user: any LinkStreamUser
    ) -> any LinkStream {
        let stream = SocketStream(user)
        let (loop, certificates) = (self.loop, self.certificates)
        Task(executorPreference: loop) { [weak stream] in
            let addresses = (try? await NameLookup.addresses(of: peer.host, port: peer.port)) ?? []
            loop.perform { [weak stream] in
                stream?.begin(to: addresses.first, peer, patience, certificates, loop)
            }
        }
        return stream
    }
}

extension ByteListener: LinkListener {}

private struct SocketSeed: LinkSeed {
    let seed: ByteStreamSeed
    let certificates: SocketLinks.Certificates

    var origin: String { "\(self.seed.from)" }

    func open(within patience: Duration, user: any LinkStreamUser) throws(LinkFailure)
        -> any LinkStream
    {
        let stream = SocketStream(user)
        do throws(TransportError) {
            try stream.open(self.seed, self.certificates, patience)
        } catch { throw LinkFailure("\(error)") }
        return stream
    }
}

/// A ``ByteStream`` as the links use it: one call more for each batch of bytes.
///
/// `@unchecked`: touched only on its loop.
private final class SocketStream: LinkStream, ByteStreamUser, @unchecked Sendable {
    private weak var user: (any LinkStreamUser)?
    private var stream: ByteStream?
    private var isClosed = false

    init(_ user: any LinkStreamUser) { self.user = user }

    func open(
        _ seed: ByteStreamSeed, _ certificates: SocketLinks.Certificates, _ patience: Duration
    ) throws(TransportError) {
        self.stream = try seed.open(
            tls: certificates.server.context, within: patience, user: self)
    }

    func begin(
        to address: SocketAddress?, _ peer: PeerAddress, _ patience: Duration,
        _ certificates: SocketLinks.Certificates, _ loop: EventLoop
    ) {
        guard !self.isClosed else { return }
        guard let address else {
            return self.end(.failed(LinkFailure("the name '\(peer.host)' cannot be resolved")))
        }
        do throws(TransportError) {
            self.stream = try ByteStream.connect(
                to: address, tls: certificates.client(), name: peer.name, loop: loop,
                within: patience, user: self)
        } catch { self.end(.failed(LinkFailure(error))) }
    }

    private func end(_ end: LinkEnd) {
        guard !self.isClosed else { return }
        self.isClosed = true
        self.stream = nil
        self.user?.ended(end)
    }

    // MARK: LinkStream

    func wantsToSend() { self.stream?.wantsToSend() }

    func close() {
        self.isClosed = true
        self.stream?.close()
        self.stream = nil
    }

    // MARK: ByteStreamUser

    func streamOpened(_ stream: ByteStream, certificate: PeerCertificate?) {
        self.user?.opened(
            by: certificate.map {
                LinkCertificate(name: $0.commonName, fingerprint: $0.fingerprint)
            })
    }

    func stream(_ stream: ByteStream, received bytes: Bytes) { self.user?.received(bytes) }

    func stream(_ stream: ByteStream, fill output: inout Bytes) { self.user?.fill(&output) }

    func streamEnded(_ stream: ByteStream, _ end: ByteStream.End) {
        switch end {
        case .ended: self.end(.closed)
        case .failed(let error): self.end(.failed(LinkFailure(error)))
        case .tooSlow: self.end(.failed(LinkFailure(end.description)))
        }
    }
}

extension LinkFailure {
    fileprivate init(_ error: TransportError) {
        switch error {
        case .socket(let error): self.init("\(error)", isRefusal: error.kind == .refused)
        case .tls(let error): self.init("\(error)")
        }
    }
}
