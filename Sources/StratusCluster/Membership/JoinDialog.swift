import StratusCoding
package import StratusModel
package import StratusRuntime
package import StratusTLS

/// Asks one member of a cluster to be admitted: one connection, one question, one answer.
///
/// `@unchecked`: touched only on the loop.
package final class JoinDialog: ByteStreamUser, @unchecked Sendable {
    package enum Answer: Sendable, Equatable {
        case admitted(PeerAdmission)
        /// In words: the cluster will not have this node, by this token.
        case refused(PeerRefusal)
        /// It could not be asked; another member, or a later moment, may do.
        case unreachable(String)
    }

    private static let patience = Duration.seconds(10)

    private let join: PeerJoin
    private let finish: @Sendable (Answer) -> Void
    private var stream: ByteStream?
    private var reader = PeerFrameReader()
    private var question: Bytes = []
    private var isOver = false

    private init(_ join: PeerJoin, finish: @escaping @Sendable (Answer) -> Void) {
        self.join = join
        self.finish = finish
    }

    /// - Parameter peer: whom to ask; its certificate must name it.
    package static func ask(
        _ join: PeerJoin, of peer: ClusterFormation.Peer, tls: TLSContext, loop: EventLoop
    ) async -> Answer {
        let addresses = (try? await NameLookup.addresses(of: peer.host, port: peer.port)) ?? []
        guard let address = addresses.first else {
            return .unreachable("the name '\(peer.host)' cannot be resolved")
        }
        return await withCheckedContinuation { continuation in
            loop.perform {
                let dialog = JoinDialog(join) { continuation.resume(returning: $0) }
                do throws(TransportError) {
                    dialog.stream = try ByteStream.connect(
                        to: address, tls: tls, name: peer.name, loop: loop,
                        within: Self.patience, user: dialog)
                } catch { return dialog.end(.unreachable("\(error)")) }
                // Keeps the dialog, which nobody else does, until it is over.
                _ = loop.schedule(at: loop.now + Self.patience) {
                    dialog.end(.unreachable("no answer within \(Self.patience)"))
                }
            }
        }
    }

    private func end(_ answer: Answer) {
        guard !self.isOver else { return }
        self.isOver = true
        self.stream?.close()
        self.stream = nil
        self.finish(answer)
    }

    // MARK: ByteStreamUser

    package func streamOpened(_ stream: ByteStream, certificate: PeerCertificate?) {
        var frames = PeerFrameQueue()
        _ = frames.add(PeerMessage.join(self.join).encoded(), .vital)
        frames.fill(&self.question, sizeMax: .max)
        stream.wantsToSend()
    }

    package func stream(_ stream: ByteStream, fill output: inout Bytes) {
        if !self.question.isEmpty { swap(&output, &self.question) }
    }

    package func stream(_ stream: ByteStream, received bytes: Bytes) {
        var messages: [PeerFrameReader.Message] = []
        do throws(PeerFrameReader.Violation) {
            try self.reader.take(bytes, into: &messages)
        } catch { return self.end(.unreachable("broke the protocol: \(error)")) }
        guard let first = messages.first else { return }
        switch try? PeerMessage(decoding: first.bytes) {
        case .admission(let admission)?: self.end(.admitted(admission))
        case .refusal(let refusal)?: self.end(.refused(refusal))
        default: self.end(.unreachable("sent an unexpected message"))
        }
    }

    package func streamEnded(_ stream: ByteStream, _ end: ByteStream.End) {
        self.end(.unreachable(end.description))
    }
}
