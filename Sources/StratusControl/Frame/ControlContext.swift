import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess

/// What a command of `stratusctl` runs with: its words, the node that it asks, and for whom it
/// prints.
struct ControlContext: Sendable {
    let invocation: Invocation
    let client: AdminClient
    /// Whether a script reads what is printed.
    let isJSON: Bool

    /// The container and the environment that it is about, if any.
    var about: AnswerPlace? { AnswerPlace(self.invocation) }

    /// An answer as scripts get it.
    func stamp(_ json: String) -> String { self.about?.stamp(json) ?? json }
}

/// A group of commands that ask a node and print what it answers.
protocol AdminConversation: SendableMetatype {
    var context: ControlContext { get }

    init(_ context: ControlContext)
}

extension AdminConversation {
    typealias Failure = AdminClient.Failure

    var invocation: Invocation { self.context.invocation }
    var client: AdminClient { self.context.client }
    var isJSON: Bool { self.context.isJSON }

    // MARK: Asking

    func ask(_ method: String, _ path: String) async throws(AdminClient.Failure)
        -> AdminClient.Answer
    {
        try self.client.require(try await self.client.send(method, path))
    }

    func ask(_ method: String, _ path: String, _ body: some NamedMembers)
        async throws(AdminClient.Failure) -> AdminClient.Answer
    {
        try self.client.require(try await self.client.send(method, path, body: body.json))
    }

    /// Asks again for a while where the node cannot do it just now: the system partition changes
    /// its leader while nodes come and go. What is asked here may be asked twice.
    func insist(
        _ method: String, _ path: String, body: Bytes = [], for patience: Duration
    ) async throws(AdminClient.Failure) -> AdminClient.Answer {
        let clock = ContinuousClock()
        let deadline = clock.now + patience
        var answer = try await self.client.send(method, path, body: body)
        while answer.status == 503, clock.now < deadline {
            try? await Task.sleep(for: .milliseconds(200))
            answer = try await self.client.send(method, path, body: body)
        }
        return try self.client.require(answer)
    }

    /// The path of something in the container that the command names.
    func place(_ rest: String) -> String { self.context.place(rest) }

    /// A positional or an option as a segment of a path.
    func encoded(_ name: String) -> String { PercentCoding.encode(self.invocation.value(name)) }

    // MARK: Showing

    func show(_ text: String) -> ExitCode { Terminal.write(text) ? .success : .inputOutput }

    /// Prints what the command made of answers: an object for scripts, and words for people.
    func show(_ object: some NamedMembers, _ words: @autoclosure () -> String) -> ExitCode {
        guard self.isJSON else { return self.show(words()) }
        return self.show(self.context.stamp(String(decoding: object.line, as: UTF8.self)))
    }

    /// Prints an answer: as it came for scripts, and in words for people.
    func tell<Told: NamedMembers>(
        _ answer: AdminClient.Answer, _ words: (Told) throws(AdminClient.Failure) -> String
    ) throws(AdminClient.Failure) -> ExitCode {
        if self.isJSON { return self.show(self.context.stamp(answer.text) + "\n") }
        return self.show(try words(try answer.read()))
    }

    /// Prints an answer that has nothing for people.
    func tell(_ answer: AdminClient.Answer, said: String) -> ExitCode {
        self.show((self.isJSON ? self.context.stamp(answer.text) : said) + "\n")
    }

    /// Prints an answer that is one list as a table.
    func table<Row: ListedRow & TabularRow>(of _: Row.Type, _ path: String)
        async throws(AdminClient.Failure) -> ExitCode
    {
        try self.tell(try await self.ask("GET", path)) { (listing: Listing<Row>) in
            TextTable.text(listing.rows)
        }
    }

    /// Says that a command made the container that it names. It stands apart from the answer, which
    /// scripts read.
    func tellCreation(_ isCreated: Bool?) {
        guard isCreated == true else { return }
        let container = self.invocation.value("container")
        Terminal.write(
            "the container '\(container)' was not there: it was made\n", to: Terminal.errors)
    }
}

extension ControlContext {
    func place(_ rest: String) -> String {
        "/v1/containers/" + PercentCoding.encode(self.invocation.value("container"))
            + "/environments/\(self.invocation.value("environment"))" + rest
    }

    /// Refuses a word that cannot name a container, before a node is asked.
    func requireContainer() throws(AdminClient.Failure) {
        try PlaceOptions.require(self.invocation.value("container"))
    }
}

extension Terminal {
    /// Prints an object for scripts, on a line.
    static func write(_ object: some NamedMembers) -> ExitCode {
        Self.write(String(decoding: object.line, as: UTF8.self)) ? .success : .inputOutput
    }
}

extension AdminClient.Answer {
    func read<Value: NamedMembers>() throws(AdminClient.Failure) -> Value {
        try Value.read(self.body)
    }
}

extension NamedMembers {
    static func read(_ json: Bytes) throws(AdminClient.Failure) -> Self {
        let document: JSONDocument
        do throws(JSONError) { document = try JSONDocument(parsing: json) } catch {
            throw AdminClient.Failure(.inputOutput, "the node's answer is not JSON")
        }
        do throws(NamedForm.Misfit) { return try Self(reading: document.root) } catch {
            throw AdminClient.Failure(
                .inputOutput, "the node's answer is of another kind: \(error)")
        }
    }
}
