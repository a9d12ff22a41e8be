import StratusModel

/// What sends e-mail. The caller never waits for a server.
package protocol EmailSender: Sendable {
    /// Takes a message that is made later, away from the request: so its answer takes as long
    /// whether there is anybody to write to or not.
    ///
    /// - Parameter make: nil: there is nothing to send.
    /// - Returns: false: too many wait.
    func enqueue(_ make: @escaping @Sendable () async -> EmailMessage?) -> Bool
}

/// E-mail to people: what sends it, where its links lead, and what it says.
package struct EmailDesk: Sendable {
    package let sender: any EmailSender
    /// The address of the sign-in pages, without a path.
    package let base: String

    package init(_ sender: any EmailSender, base: String) {
        self.sender = sender
        self.base = base
    }

    // MARK: What messages say

    /// - Parameters:
    ///   - link: the text of the sign-in link that the person came by.
    ///   - proof: proves that whoever has it reads what comes to the address.
    package func signUp(
        to address: EmailAddress, app: String, link: String, proof: String, in text: PeopleText
    ) -> EmailMessage {
        let page = "\(self.base)/signup?t=\(link)&p=\(proof)"
        return self.message(
            to: address, text.emails.signUpSubject, text.emails.signUp, [app, self.base, page])
    }

    /// For a person who wants to sign up and has an account. Only they learn that.
    package func alreadyThere(to address: EmailAddress, app: String, in text: PeopleText)
        -> EmailMessage
    {
        self.message(
            to: address, text.emails.alreadyThereSubject, text.emails.alreadyThere,
            [app, self.base, "\(self.base)/forgot"])
    }

    package func reset(to address: EmailAddress, secret: String, in text: PeopleText)
        -> EmailMessage
    {
        self.message(
            to: address, text.emails.resetSubject, text.emails.reset,
            [self.base, "\(self.base)/reset?s=\(secret)"])
    }

    /// Nobody knows the person's language yet.
    package func invitation(to address: EmailAddress, secret: String) -> EmailMessage {
        let text = PeopleText.english
        return self.message(
            to: address, text.emails.invitationSubject, text.emails.invitation,
            [self.base, "\(self.base)/reset?s=\(secret)"])
    }

    private func message(
        to address: EmailAddress, _ subject: String, _ body: String, _ values: [String]
    ) -> EmailMessage {
        EmailMessage(to: address, subject: subject, body: PeopleText.fill(body, values) + "\n")
    }
}
