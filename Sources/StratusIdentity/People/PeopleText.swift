/// What pages and e-mails say to people, in one language. A third language is one more file.
///
/// Texts hold no HTML. `{}` stands where a name or a number goes, in the order of the fields'
/// comments.
package struct PeopleText: Sendable, Equatable {
    /// As the attribute `lang` of a page names it.
    let tag: String
    package var language: String { self.tag }
    /// What the language calls itself.
    package let ownName: String

    package let signIn: SignIn
    package let account: AccountText
    package let password: PasswordText
    package let appPasswords: AppPasswordText
    package let problems: Problems
    package let page: Page
    package let emails: Emails

    /// Headings and links that several pages share.
    package struct Page: Sendable, Equatable {
        package let done: String
        package let failed: String
        package let notFound: String
        package let front: String
        package let changePassword: String
        package let appPasswords: String
        package let privacy: String
        package let terms: String
        package let help: String
        /// The app's identifier, the server's name.
        package let appAtServer: String
    }

    /// The page where people sign in, and where the token goes.
    package struct SignIn: Sendable, Equatable {
        package let title: String
        /// The app.
        package let continueTo: String
        /// An address.
        package let returnsTo: String
        package let theOpener: String
        package let tokenToCopy: String
        package let email: String
        package let password: String
        package let stay: String
        package let submit: String
        package let forgot: String
        package let signUp: String
        package let signedIn: String
        package let copyToken: String
        package let closeWindow: String
        package let forAnAppThatAsks: String
        package let token: String
        package let back: String
    }

    /// The pages where an account is made.
    package struct AccountText: Sendable, Equatable {
        package let title: String
        package let givenName: String
        package let familyName: String
        package let discoverable: String
        package let submit: String
        package let haveOne: String
        package let address: String
        package let isUnchecked: String
        package let sendLink: String
        package let linkFollows: String
        package let made: String
        package let look: String
        /// An address.
        package let onItsWay: String
        package let nothingCame: String
    }

    /// The pages that set a password.
    package struct PasswordText: Sendable, Equatable {
        package let changeTitle: String
        package let new: String
        package let change: String
        package let endsSessions: String
        package let changed: String
        package let resetTitle: String
        package let set: String
        package let wasSet: String
        package let forgotTitle: String
        package let noEmail: String
        package let linkFollows: String
    }

    /// The page of the passwords that programs show.
    package struct AppPasswordText: Sendable, Equatable {
        package let title: String
        package let intro: String
        package let proceed: String
        /// The password's name.
        package let copy: String
        package let one: String
        package let none: String
        package let everything: String
        package let documents: String
        package let reading: String
        package let writing: String
        /// A date.
        package let made: String
        package let withdraw: String
        package let withdrawing: String
        /// The password's name.
        package let withdrawThis: String
        package let noApp: String
        package let newOne: String
        package let name: String
        package let app: String
        package let readOnly: String
        package let showsAll: String
        package let submit: String
        package let signedOut: String
        /// A number.
        package let nameLength: String
        package let chooseApp: String
        /// A number.
        package let tooMany: String
        package let withdrawnAlready: String
    }

    /// What went wrong.
    package struct Problems: Sendable, Equatable {
        package let wrong: String
        package let busy: String
        /// Two numbers.
        package let passwordRule: String
        /// Minutes.
        package let limited: String
        package let notAnAddress: String
        package let taken: String
        package let unavailable: String
        package let otherSite: String
        package let halfForm: String
        package let noForm: String
        package let wrongMethod: String
        package let incompleteSignIn: String
        package let incompleteLink: String
        package let usedLink: String
        package let usedSignIn: String
        package let oldSignIn: String
        package let oldSignUp: String
        package let passwordChanged: String
        package let unwelcome: String
        package let closed: String
    }

    /// Each is a subject, and a body of lines.
    package struct Emails: Sendable, Equatable {
        package let signUpSubject: String
        /// The app, the server, the link.
        package let signUp: String
        package let alreadyThereSubject: String
        /// The app, the server, the link.
        package let alreadyThere: String
        package let resetSubject: String
        /// The server, the link.
        package let reset: String
        package let invitationSubject: String
        /// The server, the link.
        package let invitation: String
    }
}

extension PeopleText {
    /// The languages that there are. The first one is for who asks for none of them.
    package static let all: [PeopleText] = [.english, .german]
    /// So many ranges of a header are looked at.
    private static let rangeCountMax = 10

    /// - Parameters:
    ///   - wanted: the language that the page's address names.
    ///   - accepted: the browser's `Accept-Language`.
    package static func chosen(_ wanted: String?, accepted: String?) -> PeopleText {
        if let text = wanted.flatMap(self.named) { return text }
        var best: (text: PeopleText, weight: Double)?
        for range in (accepted ?? "").split(separator: ",").prefix(Self.rangeCountMax) {
            let parts = range.split(separator: ";").map { $0.filter { $0 != " " } }
            guard let name = parts.first, let text = self.named(name) else { continue }
            let weight =
                parts.dropFirst().first { $0.hasPrefix("q=") }
                .map { Double($0.dropFirst(2)) ?? 0 } ?? 1
            if weight > best?.weight ?? 0 { best = (text, weight) }
        }
        return best?.text ?? Self.all[0]
    }

    /// The language of a tag such as `de` or `de-CH`.
    package static func named(_ tag: String) -> PeopleText? {
        let primary = tag.prefix { $0 != "-" }.lowercased()
        return self.all.first { $0.tag == primary }
    }

    /// A text with what stands for each `{}`, in order.
    package static func fill(_ text: String, _ values: [String]) -> String {
        var (filled, rest) = ("", values[...])
        var tail = Substring(text)
        while let place = tail.firstRange(of: "{}") {
            filled += tail[..<place.lowerBound]
            filled += rest.popFirst() ?? ""
            tail = tail[place.upperBound...]
        }
        return filled + tail
    }
}
