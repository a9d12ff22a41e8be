package import StratusCluster
package import StratusIdentity
package import StratusModel
package import StratusRuntime
package import StratusSealing

/// What every surface and every service of the gateway needs: the partitions, who asks, the clock,
/// the bounds and the caches.
///
/// It keeps nothing between requests but caches of what partitions say, so any node can answer any
/// request. What only one folder needs is given to that folder.
package final class GatewayKernel: Sendable {
    package let partitions: PartitionClient
    let authenticator: any Authenticator
    package var world: any World { self.partitions.world }
    /// What sync tokens are sealed with.
    let cipher: TokenCipher
    /// What poll tokens are proved by: the same for as long as the installation lives.
    let tokens: TokenCipher
    /// What encrypted fields are sealed under.
    let keys: DatabaseKeys
    /// What the links of shares are made with.
    let identities: IdentityKeys
    let settings: GatewaySettings
    let limits: Limits
    let log: Log
    let rates: RequestRates
    let bodies: BodyBudget
    let answers: AnswerBudget
    let caches = GatewayCaches()
    /// The requests that are held at this node.
    let held: HeldRequests
    /// Where they wait.
    var seats: PollSeats { self.held.seats }
    /// Look-ups that need more than one answer of a partition. This many keep the storage thread
    /// and the loops busy.
    let longReads = LongWork(4)

    /// - Parameter tokenKey: 32 secret bytes, the same on every node and over every restart: what
    ///   clients' sync tokens are sealed with.
    /// - Parameter feeds: what seals them instead, where its keys change; made with `tokenKey`.
    /// - Parameter bodies: shared by every kernel of a node, so that one that follows another
    ///   counts what the other still holds; nil: one of its own, by the limits.
    /// - Parameter answers: the same of answers, shared with the node's replicas.
    /// - Parameter held: the same of requests that are held.
    package init(
        partitions: PartitionClient, authenticator: any Authenticator, keys: DatabaseKeys,
        tokenKey: Bytes, feeds: TokenCipher? = nil,
        settings: GatewaySettings = GatewaySettings(), limits: Limits = Limits(),
        bodies: BodyBudget? = nil, answers: AnswerBudget? = nil,
        held: HeldRequests = HeldRequests(),
        log: Log = .silent()
    ) {
        self.partitions = partitions
        self.authenticator = authenticator
        self.keys = keys
        self.identities = IdentityKeys(master: tokenKey)
        self.cipher = feeds ?? TokenCipher(key: tokenKey)
        self.tokens = TokenCipher(key: tokenKey)
        self.settings = settings
        self.limits = limits
        self.log = log
        self.rates = RequestRates(settings)
        self.bodies = bodies ?? BodyBudget(limits.bufferedBodySizeMax)
        self.answers = answers ?? AnswerBudget(limits.bufferedAnswerSizeMax)
        self.held = held
    }

    /// Wakes the polls that follow a database, here and at other nodes.
    func stirred(_ database: DatabaseID) { self.seats.changed(database, at: self.world.now) }

    /// A name for a seat that nobody takes after it: no token of a poll has this length.
    func seatName() -> Bytes {
        [self.world.random(), self.world.random(), self.world.random()].flatMap { word in
            withUnsafeBytes(of: word) { Bytes($0) }
        }
    }

    /// Reads a body whole. A signature covers all of it, so a signed request's body is read here
    /// even for an operation that pulls its body. It may then be no larger than any other.
    func collect(
        _ body: any RequestBody, _ share: inout BodyBudget.Share
    ) async throws(InputRefusal) -> Bytes {
        var whole: Bytes = []
        while let more = try await self.next(of: body) {
            guard whole.count + more.count <= self.limits.requestSizeMax.raw else {
                throw .bodyTooLarge(self.limits.requestSizeMax)
            }
            guard share.grow(by: more.count) else { throw .noRoomForBody }
            // The common case is a body in one piece: it stays where it lies.
            if whole.isEmpty { whole = more } else { whole += more }
        }
        return whole
    }

    func next(of body: any RequestBody) async throws(InputRefusal) -> Bytes? {
        do throws(RequestBodyError) { return try await body.next() } catch {
            switch error {
            case .tooLarge: throw .bodyTooLarge(self.limits.requestSizeMax)
            case .cutShort: throw .bodyCutShort
            }
        }
    }

    /// Logs why a request failed, if clients are not told.
    func note(_ error: ClientError, uuid: String, cause: any Error) {
        guard error.code == .internalError else { return }
        self.log.error(
            "a request failed inside",
            ["request": .text(uuid), "cause": .text(String(describing: cause))])
    }
}

/// What a gateway remembers of what partitions have said.
struct GatewayCaches: Sendable {
    let schemas = SchemaCache()
    let taughtSchemas = TaughtSchemas()
    let bucketUses = BucketUses()
    let readyQueries = ReadyQueries()
    let zoneBuckets = ZoneBucketCache()
}
