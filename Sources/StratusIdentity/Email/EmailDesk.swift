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
    package func signUp(to address: EmailAddress, app: String, link: String, proof: String)
        -> EmailMessage
    {
        self.message(
            to: address, "Create your account",
            """
            Somebody, probably you, wants to create an account for \(app)
            at \(self.base) with this e-mail address.

            Open this address to go on. It is good for a day:

            \(self.base)/signup?t=\(link)&p=\(proof)

            If it was not you, do nothing: no account is made.
            """)
    }

    /// For a person who wants to sign up and has an account. Only they learn that.
    package func alreadyThere(to address: EmailAddress, app: String) -> EmailMessage {
        self.message(
            to: address, "You have an account already",
            """
            Somebody, probably you, wants to create an account for \(app)
            at \(self.base) with this e-mail address. There is one already:
            go back to the app and sign in.

            Open this address if you have forgotten the password:

            \(self.base)/forgot

            If it was not you, do nothing.
            """)
    }

    package func reset(to address: EmailAddress, secret: String) -> EmailMessage {
        self.message(
            to: address, "Choose a new password",
            """
            Somebody, probably you, asked for a new password at
            \(self.base).

            Open this address to choose it. It works once, within a day:

            \(self.base)/reset?s=\(secret)

            If it was not you, do nothing: your password stays as it is.
            """)
    }

    package func invitation(to address: EmailAddress, secret: String) -> EmailMessage {
        self.message(
            to: address, "Your account",
            """
            An administrator of \(self.base) has made an account for you.

            Open this address to choose a password. It works once, within a day:

            \(self.base)/reset?s=\(secret)
            """)
    }

    private func message(to address: EmailAddress, _ subject: String, _ body: String)
        -> EmailMessage
    {
        EmailMessage(to: address, subject: subject, body: body + "\n")
    }
}
