import StratusAdminModel
package import StratusCommandLine
import StratusHTTP
package import StratusModel
import StratusProcess
package import StratusRuntime
import StratusTLS

/// Talks to the administrators' listener of a node: what `stratusctl` does over the wire.
package struct AdminClient: Sendable {
    package struct Failure: Error, Sendable, CustomStringConvertible {
        package var code: ExitCode
        package var description: String
        /// The node's own word for it: `BAD_SCHEMA`.
        package var name: String?

        package init(_ code: ExitCode, _ description: String, name: String? = nil) {
            self.code = code
            self.description = description
            self.name = name
        }
    }

    /// How to reach a node and how to prove who is asking.
    package struct Target: Sendable {
        /// `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`.
        package var node: String
        package var tokenFile: String?
        /// The authority of the node's certificate; nil for those the system knows.
        package var authorityFile: String?
        package var certificateFile: String?
        package var keyFile: String?

        package init(
            node: String, tokenFile: String? = nil, authorityFile: String? = nil,
            certificateFile: String? = nil, keyFile: String? = nil
        ) {
            self.node = node
            self.tokenFile = tokenFile
            self.authorityFile = authorityFile
            self.certificateFile = certificateFile
            self.keyFile = keyFile
        }
    }

    /// Where the node is, as it was given.
    package let node: String
    private let client: HTTPClient
    private let target: Target
    private let loop: EventLoop
    private let token: Secret<String>?
    private let hasCertificate: Bool

    package init(_ target: Target, loop: EventLoop) async throws(Failure) {
        self.node = target.node
        self.target = target
        self.loop = loop
        self.hasCertificate = target.certificateFile != nil
        var limits = HTTPLimits()
        // ``send(_:_:body:contentType:deadline:)`` has its own; what is handed over piece by piece
        // has none.
        limits.bodySizeMax = ByteCount(.max)
        self.client = HTTPClient(
            try await Self.endpoint(target), loop: loop, idleCountMax: 1, limits: limits)
        if let path = target.tokenFile {
            let bytes: Bytes
            do throws(SmallFile.Failure) {
                bytes = try SmallFile.read(path, limit: .kibibytes(4))
            } catch { throw Failure(.missingInput, "the token: \(error)") }
            let text = String(decoding: bytes.prefix { $0 > 0x20 && $0 < 0x7F }, as: UTF8.self)
            guard !text.isEmpty else { throw Failure(.missingInput, "'\(path)' holds no token") }
            self.token = Secret(text)
        } else {
            self.token = nil
        }
    }

    package struct Answer: Sendable {
        package var status: Int
        package var body: Bytes

        package var text: String { String(decoding: self.body, as: UTF8.self) }
    }

    /// For answers that go on for as long as the work that they tell of.
    package static let longWork = Duration.seconds(7 * 24 * 3_600)

    /// One request. An answer of any status is an answer; see ``require(_:)``.
    package func send(
        _ method: String, _ target: String, body: Bytes = [],
        contentType: String = "application/json",
        deadline: Duration = .seconds(30)
    ) async throws(Failure) -> Answer {
        do throws(HTTPClientError) {
            let (head, body) = try await self.client.send(
                HTTPClientRequest(
                    method: method, target: target, headers: self.headers(body, contentType),
                    body: .bytes(body)),
                deadline: deadline)
            return Answer(status: head.status, body: body)
        } catch { throw await self.failure(error, method) }
    }

    /// One request with a body that is made while it is sent.
    package func send(
        _ method: String, _ target: String, stream: any ResponseBody,
        deadline: Duration = Self.longWork
    ) async throws(Failure) -> Answer {
        do throws(HTTPClientError) {
            let (head, body) = try await self.client.send(
                HTTPClientRequest(
                    method: method, target: target,
                    headers: self.headers([0], "application/octet-stream"),
                    body: .stream(stream, length: nil)),
                deadline: deadline)
            return Answer(status: head.status, body: body)
        } catch { throw await self.failure(error, method) }
    }

    /// One request whose answer is handed over piece by piece, however long it is.
    ///
    /// - Parameter take: false: the rest is not wanted.
    package func pieces(
        _ method: String, _ target: String, body: Bytes = [], deadline: Duration = Self.longWork,
        take: (Bytes) throws(Failure) -> Bool
    ) async throws(Failure) {
        let response: HTTPClientResponse
        do throws(HTTPClientError) {
            response = try await self.client.open(
                HTTPClientRequest(
                    method: method, target: target,
                    headers: self.headers(body, "application/json"), body: .bytes(body)),
                deadline: deadline)
        } catch { throw await self.failure(error, method) }
        var refusal = Bytes()
        while let piece = try await self.piece(of: response) {
            if response.head.status >= 300 {
                refusal += piece
                if refusal.count <= Self.refusalSizeMax { continue }
            } else if try take(piece) {
                continue
            }
            await response.abandon()
            break
        }
        _ = try self.require(Answer(status: response.head.status, body: refusal))
    }

    /// One request whose answer is lines, of which each is handed over as it comes.
    package func lines(
        _ method: String, _ target: String, body: Bytes = [],
        take: (Bytes) throws(Failure) -> Bool
    ) async throws(Failure) {
        var rest = Bytes()
        try await self.pieces(method, target, body: body) { piece throws(Failure) in
            rest += piece
            while let end = rest.firstIndex(of: 0x0A) {
                let line = Bytes(rest[..<end])
                rest.removeFirst(end + 1)
                if line.isEmpty { continue }
                if line.starts(with: ErrorAnswer.mark) { throw self.failure(line) }
                if try !take(line) { return false }
            }
            guard rest.count <= Self.lineSizeMax else {
                throw Failure(.inputOutput, "the node's answer is not lines")
            }
            return true
        }
    }

    private static let lineSizeMax = 1 << 20
    private static let refusalSizeMax = 1 << 20

    private func piece(of response: HTTPClientResponse) async throws(Failure) -> Bytes? {
        do throws(HTTPClientError) { return try await response.next() } catch {
            guard case .cutShort = error else { throw await self.failure(error, "GET") }
            throw Failure(
                .inputOutput,
                "\(self.node) ended its answer before it was complete: what came is not all")
        }
    }

    private func failure(_ line: Bytes) -> Failure {
        let error = try? ErrorAnswer(reading: line).error
        return Failure(
            .inputOutput, error?.reason ?? "\(self.node) did not say why it stopped",
            name: error?.code)
    }

    private func headers(_ body: Bytes, _ contentType: String) -> HeaderFields {
        var headers = HeaderFields()
        if let token { headers.append("Authorization", "Bearer " + token.reveal()) }
        if !body.isEmpty { headers.append("Content-Type", contentType) }
        return headers
    }

    /// The answer, or what its status says in words and exit code.
    package func require(_ answer: Answer) throws(Failure) -> Answer {
        if answer.status < 300 { return answer }
        let error = try? ErrorAnswer(reading: answer.body).error
        let code: ExitCode =
            switch answer.status {
            case 401, 403: .denied
            case 503: .temporary
            default: .refused
            }
        guard let error, !error.reason.isEmpty else {
            throw Failure(
                code == .refused ? .unavailable : code,
                "\(self.node) answered \(answer.status), but not as the administrators' listener does: "
                    + "name that one with '--node'. It is 'admin.listen' of the node's configuration, "
                    + "and the node's log says where it is")
        }
        throw Failure(code, self.advice(answer.status, error), name: error.code)
    }

    /// The node's reason, in the words of this program's options.
    private func advice(_ status: Int, _ error: ErrorAnswer.Detail) -> String {
        let reason = error.reason
        if status == 401, self.token == nil, !self.hasCertificate {
            return "\(self.node) asks for the administrators' token: name its file with "
                + "'--token-file', or in STRATUSCTL_TOKEN_FILE"
        }
        if let accept = error.accept, reason.hasSuffix("accept \(accept)") {
            let request = "accept \(accept)"
            return reason.dropLast(request.count) + "repeat the command with '--accept \(accept)'"
        }
        return reason
    }

    private func failure(_ error: HTTPClientError, _ method: String) async -> Failure {
        switch error {
        case .notSecure, .cutShort, .malformed:
            if let advice = await self.otherScheme() { return Failure(.usage, advice) }
        default: break
        }
        return self.words(error, method)
    }

    /// Says so if the node speaks the other one of HTTP and TLS.
    private func otherScheme() async -> String? {
        let isSecure = self.node.hasPrefix("https://")
        guard isSecure || self.node.hasPrefix("http://") else { return nil }
        var other = Target(node: "")
        other.node =
            isSecure
            ? "http" + self.node.dropFirst("https".count)
            : "https" + self.node.dropFirst("http".count)
        guard let endpoint = try? await Self.endpoint(other) else { return nil }
        let client = HTTPClient(endpoint, loop: self.loop, idleCountMax: 1)
        do throws(HTTPClientError) {
            _ = try await client.send(
                HTTPClientRequest(method: "GET", target: "/healthz"), deadline: .seconds(2))
        } catch {
            // Whoever shows a certificate speaks TLS, trusted or not.
            guard !isSecure, case .notSecure(let error) = error, error.kind == .untrustedPeer else {
                return nil
            }
        }
        return isSecure
            ? "\(self.node) speaks HTTP without TLS: write \(other.node)"
            : "\(self.node) speaks TLS: write \(other.node), and name the authority of its "
                + "certificate with '--authority'"
    }

    private func words(_ error: HTTPClientError, _ method: String) -> Failure {
        switch error {
        case .unreachable:
            Failure(.unavailable, "nobody answers at \(self.node): is the node running?")
        case .notSecure(let error):
            Failure(.denied, "the certificate of \(self.node) cannot be trusted: \(error)")
        case .deadlinePassed: Failure(.temporary, "\(self.node) did not answer in time")
        case .cutShort:
            Failure(
                .inputOutput,
                "\(self.node) closed the connection before it answered"
                    + (method == "GET" ? "" : "; the change may have been made"))
        case .malformed, .tooLarge:
            Failure(
                .inputOutput, "\(self.node) did not answer as a Stratus node: check the address")
        case .cancelled, .bodyFailed: Failure(.interrupted, "interrupted")
        }
    }

    /// The endpoint of a node's URL, with the name looked up and the authority read.
    package static func endpoint(_ target: Target) async throws(Failure) -> HTTPEndpoint {
        let wrong = Failure(
            .usage,
            "'\(target.node)' is not a node's address: write http://HOST:PORT, "
                + "https://HOST:PORT or unix:PATH")
        if target.node.hasPrefix("unix:") {
            guard let address = ListenAddress(target.node) else { throw wrong }
            return HTTPEndpoint(await Endpoints.addresses(address), host: "localhost")
        }
        let isSecure = target.node.hasPrefix("https://")
        guard isSecure || target.node.hasPrefix("http://") else { throw wrong }
        var rest = target.node.dropFirst(isSecure ? 8 : 7)
        if rest.hasSuffix("/") { rest.removeLast() }
        guard let address = ListenAddress(String(rest)), case .tcp(let name, _) = address else {
            throw wrong
        }
        let addresses = await Endpoints.addresses(address)
        guard !addresses.isEmpty else {
            throw Failure(.unavailable, "the name '\(name)' cannot be resolved")
        }
        var endpoint = HTTPEndpoint(addresses, host: String(rest))
        if isSecure { endpoint.tls = HTTPEndpoint.TLS(try Self.context(target), name: name) }
        return endpoint
    }

    /// Refuses a file without what it is named for: OpenSSL's words for it name no file.
    private static func require(
        _ what: String, _ bytes: Bytes?, _ option: String, _ path: String?
    ) throws(Failure) {
        guard let bytes, let path,
            !String(decoding: bytes, as: UTF8.self).contains("-----BEGIN \(what)-----")
        else { return }
        throw Failure(
            .malformedInput,
            "'\(path)' holds no certificate in PEM form: '\(option)' wants one"
                + (bytes.isEmpty ? ", and the file is empty" : ""))
    }

    private static func context(_ target: Target) throws(Failure) -> TLSContext {
        var configuration = TLSClientConfiguration()
        do throws(SmallFile.Failure) {
            if let path = target.authorityFile {
                configuration.authorityPEM = try SmallFile.read(path)
            }
            if let certificate = target.certificateFile, let key = target.keyFile {
                configuration.identity = CertificateAndKey(
                    certificatePEM: try SmallFile.read(certificate),
                    privateKeyPEM: try SmallFile.read(key))
            }
        } catch { throw Failure(.missingInput, "TLS: \(error)") }
        try Self.require(
            "CERTIFICATE", configuration.authorityPEM, "--authority", target.authorityFile)
        try Self.require(
            "CERTIFICATE", configuration.identity?.certificatePEM, "--certificate",
            target.certificateFile)
        do throws(TLSError) { return try TLSContext(client: configuration) } catch {
            throw Failure(.configuration, "TLS: \(error)")
        }
    }
}
