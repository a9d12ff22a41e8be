/// How an app looks on the pages where its people sign in.
package struct BrandAnswer: NamedMembers {
    package var name = ""
    package var welcome: String?
    package var privacy: String?
    package var terms: String?
    package var help: String?
    package var colour = ""
    /// The path of the logo at the clients' address.
    package var logo: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("name", &self.name)
        form.member("welcome", &self.welcome)
        form.member("privacy", &self.privacy)
        form.member("terms", &self.terms)
        form.member("help", &self.help)
        form.member("colour", &self.colour)
        form.member("logo", &self.logo)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("name", \.name), .init("welcome") { $0.welcome ?? "" },
            .init("privacy") { $0.privacy ?? "" }, .init("terms") { $0.terms ?? "" },
            .init("help") { $0.help ?? "" }, .init("colour", \.colour),
            .init("logo") { $0.logo ?? "" },
        ]
    }
}

/// What changes of a brand. What is absent stays; an empty text takes away.
package struct BrandBody: NamedMembers {
    package var name: String?
    package var welcome: String?
    package var privacy: String?
    package var terms: String?
    package var help: String?
    package var colour: String?
    /// A PNG, in Base64.
    package var logo: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("name", &self.name)
        form.member("welcome", &self.welcome)
        form.member("privacy", &self.privacy)
        form.member("terms", &self.terms)
        form.member("help", &self.help)
        form.member("colour", &self.colour)
        form.member("logo", &self.logo)
    }
}
