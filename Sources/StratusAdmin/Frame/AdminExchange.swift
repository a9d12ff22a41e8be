import StratusAdminModel
import StratusCluster
import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime
import StratusTLS

/// One administrator's request, with what its page works on.
struct AdminExchange: Sendable {
    let request: HTTPRequest
    /// The template of its route.
    let template: String
    /// The values of the names in braces of the route's template.
    let parameters: [String: String]
    let services: AdminServices

    var log: Log { self.services.log }
    var control: any NodeControl { self.services.control }
    var query: URLQuery? { URLQuery(self.request.head.query) }

    // MARK: What a node may lack

    var directory: Directory {
        get throws(AdminRefusal) {
            guard let directory = self.services.directory else {
                throw AdminRefusal(404, .notFound, "this node has no accounts")
            }
            return directory
        }
    }

    var cluster: any ClusterControl {
        get throws(AdminRefusal) {
            guard let cluster = self.services.cluster else {
                throw AdminRefusal(
                    404, .notClustered,
                    "this node works alone: it has neither 'cluster.peers' nor 'cluster.join'")
            }
            return cluster
        }
    }

    /// Nil where the node works alone.
    var clusterIfAny: (any ClusterControl)? { self.services.cluster }

    var push: any PushControl {
        get throws(AdminRefusal) {
            guard let push = self.services.push else {
                throw AdminRefusal(404, .notFound, "this node sends no pushes ('push.enabled')")
            }
            return push
        }
    }

    var accounts: Accounts { get throws(AdminRefusal) { try self.directory.accounts } }
    var store: IdentityStore { get throws(AdminRefusal) { try self.accounts.store } }
    var access: ContainerAccess { get throws(AdminRefusal) { try self.directory.access } }
    var registry: ContainerRegistry { get throws(AdminRefusal) { try self.directory.registry } }

    // MARK: Input

    /// The value of a name in braces.
    func parameter(_ name: String) -> String { self.parameters[name] ?? "" }

    /// The container and environment that the path names. One that nobody has made is refused: its
    /// name may be mistyped, and an empty answer would look like an answer.
    func container() async throws -> ContainerReference {
        let container = try self.namedContainer()
        if self.services.directory != nil { try await self.requireKnown(container) }
        return container
    }

    /// The same for what adds to it.
    func openContainer() async throws -> ContainerReference {
        let container = try await self.container()
        try await self.requireOpen(container)
        return container
    }

    /// The same for whoever may make it, or asks for what its name alone tells.
    func namedContainer() throws(AdminRefusal) -> ContainerReference {
        try Self.container(self.parameter("container"), self.parameter("environment"))
    }

    /// The container and environment that a body names, which somebody has made.
    func container(of body: PlaceBody) async throws -> ContainerReference {
        guard let name = body.container, !name.isEmpty, let environment = body.environment else {
            throw AdminRefusal.bad("'container' and 'environment' are missing")
        }
        let container = try Self.container(name, environment)
        try await self.requireKnown(container)
        return container
    }

    private static func container(_ name: String, _ environment: String) throws(AdminRefusal)
        -> ContainerReference
    {
        guard ContainerReference.isName(name) else {
            throw .bad(ContainerReference.refusal(of: name))
        }
        guard let environment = Environment(name: environment) else {
            throw .bad("the environment is 'development' or 'production'")
        }
        return ContainerReference(container: name, environment: environment)
    }

    func bytes() async throws(AdminRefusal) -> Bytes {
        do { return try await self.request.body.collect() } catch {
            throw .bad("the body could not be read")
        }
    }

    /// The body as an object; an empty body is an empty object. A member of another kind is
    /// refused: `"readOnly":"true"` must not make what may write.
    func body<Body: NamedMembers>() async throws(AdminRefusal) -> Body {
        let bytes = try await self.bytes()
        if bytes.isEmpty { return Body() }
        guard let document = try? JSONDocument(parsing: bytes), document.root.object != nil else {
            throw .bad("the body must be a JSON object")
        }
        do throws(NamedForm.Misfit) { return try Body(reading: document.root) } catch {
            throw .bad("\(error)")
        }
    }

    static func name(_ name: String?) throws(AdminRefusal) -> String {
        guard let name, (1...100).contains(name.utf8.count) else {
            throw .bad("'name' is missing, or longer than 100 bytes")
        }
        return name
    }

    // MARK: Containers and schemas

    /// Registers a container that gets an addition. A container that was deleted or is being reset
    /// gets none. With `existing=1` in the query, one that nobody has made is refused: its name may
    /// be mistyped.
    ///
    /// - Returns: whether the container was made by this.
    @discardableResult
    func admit(_ container: ContainerReference) async throws -> Bool {
        let registry = try self.registry
        try await self.requireAsAsked(container)
        switch try await registry.admission(of: container) {
        case .created: return true
        case .known: return false
        case .closed: break
        }
        try await self.requireOpen(container)
        return false
    }

    /// Refuses a container that was deleted or is being reset: what it gets would outlive that.
    func requireOpen(_ container: ContainerReference) async throws {
        switch try await self.registry.descriptor(of: container)?.state {
        case .active: return
        case .resetting:
            throw AdminRefusal(
                409, .containerResetting,
                "this environment is being reset: run 'stratusctl schema reset' again "
                    + "until it has finished")
        default:
            throw AdminRefusal(
                409, .containerDeleted,
                "this container was deleted: create it again once everything in it has "
                    + "been removed")
        }
    }

    func isKnown(_ container: ContainerReference) async throws -> Bool {
        try await self.registry.descriptor(of: container) != nil
    }

    /// Refuses a container that nobody has made where the query says `existing=1`.
    func requireAsAsked(_ container: ContainerReference) async throws {
        if ["1", "true"].contains(self.query?["existing"]) {
            try await self.requireKnown(container)
        }
    }

    func requireKnown(_ container: ContainerReference) async throws {
        guard try await self.isKnown(container) else {
            throw AdminRefusal(
                404, .notFound,
                "there is no container '\(container.container)' in \(container.environment.name): "
                    + "'stratusctl container list' shows those there are")
        }
    }

    func schema(of container: ContainerReference) async throws -> Schema {
        try await self.store.schema(of: container, as: .administrator)
    }

    // MARK: Failures

    /// The answer to a request that failed in a way that its caller cannot mend. Why goes to the
    /// log, which other people read.
    func failure(_ text: String) -> AdminRefusal {
        let number = self.request.identity.uuid
        self.log.error(
            "an administrator's request failed",
            [
                "request": .text(number), "route": .text(self.template), "reason": .text(text),
            ])
        return AdminRefusal(
            500, .internalError,
            "the node failed to answer: look for request \(number) in its log")
    }

    // MARK: Changes

    /// Writes a change that is about to be made into the log and the audit trail. For what must not
    /// be done without a note of it. A change that was made goes to ``noteAfterwards(_:_:_:)``: an
    /// error here says to the administrator that nothing was changed.
    func note(_ action: String, _ subject: String, _ container: ContainerReference? = nil)
        async throws
    {
        let place = container.map { "\($0.container) \($0.environment.name)" } ?? ""
        let subject = [subject, place].filter { !$0.isEmpty }.joined(separator: " ")
        self.log.warning(
            "changed by an administrator",
            [
                "request": .text(self.request.identity.uuid), "peer": .text(self.request.peer),
                "by": .text(self.actor), "action": .text(action), "subject": .text(subject),
            ])
        try await AuditTrail(store: try self.store).note(
            actor: self.actor, action: action, subject: subject)
    }

    /// The name of a certificate's holder; for the token, which all share, the address.
    var actor: String {
        guard let certificate = self.request.certificate else { return self.request.peer }
        return certificate.commonName ?? certificate.subject
    }

    /// Notes a change that has happened and stands, whatever becomes of the note. The trail is a
    /// record as any other, and the cluster must be mendable while a majority is missing.
    func noteAfterwards(
        _ action: String, _ subject: String, _ container: ContainerReference? = nil
    ) async {
        guard self.services.directory != nil else { return }
        do { try await self.note(action, subject, container) } catch {
            self.log.error(
                "a change is not in the audit trail",
                [
                    "request": .text(self.request.identity.uuid), "action": .text(action),
                    "subject": .text(subject), "reason": .text("\(error)"),
                ])
        }
    }

    /// The answer to a change that was made and has nothing to tell.
    func done(_ action: String, _ subject: String, _ container: ContainerReference? = nil)
        async -> HTTPResponse
    {
        await self.noteAfterwards(action, subject, container)
        return AdminAnswer.json(EmptyAnswer())
    }
}

/// What the pages of the administrators' API work on.
struct AdminServices: Sendable {
    let control: any NodeControl
    let health: Health
    let metrics: Metrics
    let log: Log
    /// Nil if this node has no accounts (tests of everything else).
    let directory: Directory?
    /// The cluster this node is in; nil where it works alone.
    let cluster: (any ClusterControl)?
    /// Nil if this node sends no pushes.
    let push: (any PushControl)?
    /// What reads the files of exports; nil if this node has none.
    let files: (any ExportedFiles)?
    /// What seals files anew; nil if this node keeps none.
    let resealing: (any FileResealing)?
    /// What copies records between environments; nil if this node serves no clients.
    let copying: (any RecordCopying)?
}

/// An error that ends a request, in words.
struct AdminRefusal: Error {
    let answer: HTTPResponse

    init(answer: HTTPResponse) { self.answer = answer }

    init(_ status: Int, _ code: AdminCode, _ reason: String) {
        self.answer = AdminAnswer.error(status, code, reason)
    }

    static func bad(_ reason: String) -> AdminRefusal {
        AdminRefusal(400, .badRequest, reason)
    }
    static func missing(_ what: String) -> AdminRefusal {
        AdminRefusal(404, .notFound, "there is no such \(what)")
    }
}
