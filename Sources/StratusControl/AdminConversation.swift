import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess

/// A group of commands that ask a node and print what it answers.
protocol AdminConversation {
    var client: AdminClient { get }
}

extension AdminConversation {
    func ask(_ method: String, _ path: String, body: Bytes = [])
        async throws(AdminClient.Failure) -> AdminClient.Answer
    {
        try self.client.require(try await self.client.send(method, path, body: body))
    }

    func document(_ answer: AdminClient.Answer) throws(AdminClient.Failure) -> JSONValue {
        do throws(JSONError) { return try JSONDocument(parsing: answer.body).root } catch {
            throw AdminClient.Failure(.inputOutput, "the node's answer is not JSON")
        }
    }

    /// Says that a command made the container that it names. It stands apart from the answer, which
    /// scripts read.
    func tellCreation(_ document: JSONValue, of container: @autoclosure () -> String) {
        guard document["created"]?.bool == true else { return }
        Terminal.write(
            "the container '\(container())' was not there: it was made\n", to: Terminal.errors)
    }

    func show(_ text: String) -> ExitCode { Terminal.write(text) ? .success : .inputOutput }
}
