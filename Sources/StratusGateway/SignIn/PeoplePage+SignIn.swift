import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime

/// The pages where people sign in, sign up and choose a password.
extension PeoplePage {
    struct SignUpFields {
        var email = ""
        var givenName = ""
        var familyName = ""
        var isDiscoverable = false
        /// The text that proves the address; nil: nothing does.
        var proof: String?
        /// Whether nobody checks that the address is the person's.
        var isUnchecked = false
    }

    func signIn(
        link: String, to receiver: SignInReceiver, canSignUp: Bool, email: String = "",
        problem: String? = nil, status: Int = 200
    ) -> HTTPResponse {
        let words = self.text.signIn
        let signUp = self.path("/signup", "t=\(Self.escape(link))")
        return self.page(
            status, title: words.title,
            """
            \(self.purpose(receiver))
            \(self.problem(problem))
            \(self.form("/signin"))
            \(Self.hidden("t", link))
            \(self.emailField(email, isWrong: problem != nil && status == 200))
            \(self.passwordField("password", words.password, "current-password"))
            \(self.check("stay", words.stay))
            \(self.button(words.submit))
            </form>
            <p><a href="\(self.path("/forgot"))">\(Self.escape(words.forgot))</a></p>
            \(canSignUp ? "<p><a href=\"\(signUp)\">\(Self.escape(words.signUp))</a></p>" : "")
            """)
    }

    func signUp(
        link: String, to receiver: SignInReceiver, fields: SignUpFields = SignUpFields(),
        problem: String? = nil, status: Int = 200
    ) -> HTTPResponse {
        // Behind a link of an e-mail no window waits: the person signs in where the app is.
        let signsIn = fields.proof == nil || !receiver.isWindow
        let words = self.text.account
        return self.page(
            status, title: words.title,
            """
            \(self.purpose(signsIn ? receiver : nil))
            \(self.problem(problem))
            \(self.form("/signup"))
            \(Self.hidden("t", link))
            \(self.textField("given", words.givenName, "given-name", fields.givenName))
            \(self.textField("family", words.familyName, "family-name", fields.familyName))
            \(self.address(of: fields))
            \(self.passwordField("password", self.text.password.new, "new-password"))
            \(self.check("discoverable", words.discoverable, isSet: fields.isDiscoverable))
            \(signsIn ? self.check("stay", self.text.signIn.stay) : "")
            \(self.button(words.submit))
            </form>
            <p>\(self.haveOne(link))</p>
            """)
    }

    /// A proven address stands as it is. Where nobody checks one, the page says so.
    private func address(of fields: SignUpFields) -> String {
        if let proof = fields.proof {
            return "<p>\(self.fill(self.text.account.address, [fields.email]))</p>"
                + Self.hidden("p", proof)
        }
        let note = "<p>\(Self.escape(self.text.account.isUnchecked))</p>"
        return self.emailField(fields.email) + (fields.isUnchecked ? note : "")
    }

    func haveOne(_ link: String) -> String {
        let path = self.path("/signin", "t=\(Self.escape(link))")
        return "<a href=\"\(path)\">\(Self.escape(self.text.account.haveOne))</a>"
    }

    /// Which app a page is for, and where the token goes.
    func purpose(_ receiver: SignInReceiver?) -> String {
        let app = self.app.map { self.fill(self.text.signIn.continueTo, [$0.name]) } ?? ""
        let returns = receiver.map { "<p>\(self.says($0))</p>" } ?? ""
        return "<p>\(app)</p>" + returns
    }

    private func says(_ receiver: SignInReceiver) -> String {
        let words = self.text.signIn
        return switch receiver {
        case .callback(let url):
            self.fill(words.returnsTo, [String(url.prefix { $0 != "?" && $0 != "#" })])
        case .origins(let origins): self.fill(words.returnsTo, [origins.joined(separator: ", ")])
        case .opener: self.fill(words.returnsTo, [words.theOpener])
        case .page: Self.escape(words.tokenToCopy)
        }
    }

    func password(email: String = "", problem: String? = nil, status: Int = 200) -> HTTPResponse {
        let words = self.text.password
        return self.page(
            status, title: words.changeTitle,
            """
            \(self.problem(problem))
            \(self.form("/password"))
            \(self.emailField(email))
            \(self.passwordField("password", self.text.signIn.password, "current-password"))
            \(self.passwordField("new", words.new, "new-password"))
            \(self.button(words.change))
            </form>
            <p>\(Self.escape(words.endsSessions))</p>
            """)
    }

    func reset(secret: String, problem: String? = nil, status: Int = 200) -> HTTPResponse {
        let words = self.text.password
        return self.page(
            status, title: words.resetTitle,
            """
            \(self.problem(problem))
            \(self.form("/reset"))
            \(Self.hidden("s", secret))
            \(self.passwordField("new", words.new, "new-password", isWrong: problem != nil))
            \(self.button(words.set))
            </form>
            """)
    }

    /// What stands at `/`.
    func front(hasPeople: Bool) -> HTTPResponse {
        let links = """
            <p><a href="\(self.path("/password"))">\(Self.escape(self.text.page.changePassword))</a><br>
            <a href="\(self.path("/app-passwords"))">\(Self.escape(self.text.page.appPasswords))</a></p>
            """
        return self.page(
            200, title: "Stratus",
            "<p>\(Self.escape(self.text.page.front))</p>\n" + (hasPeople ? links : ""))
    }

    // MARK: Problems

    var passwordRule: String {
        let length = Directory.passwordLength
        return PeopleText.fill(
            self.text.problems.passwordRule, ["\(length.lowerBound)", "\(length.upperBound)"])
    }

    func limited(_ milliseconds: Int64) -> String {
        PeopleText.fill(
            self.text.problems.limited, ["\(max(1, (milliseconds + 59_999) / 60_000))"])
    }

    // MARK: The token

    /// Nobody hears the token: the person copies it.
    func show(token: String) -> HTTPResponse {
        let words = self.text.signIn
        return self.page(
            200, title: words.signedIn,
            """
            <p role="status">\(Self.escape(words.copyToken))</p>
            \(self.shown(token))
            """)
    }

    private func shown(_ token: String) -> String {
        "<label>\(Self.escape(self.text.signIn.token))"
            + "<input readonly value=\"\(Self.escape(token))\"></label>"
    }

    /// Posts the token to the window that opened this one: one message, an object, then closes. Who
    /// has no such window finds the token on the page.
    func handOver(token: String, to targets: [String]) -> HTTPResponse {
        let names = targets.map { "\"\(Self.scriptText($0))\"" }.joined(separator: ",")
        let words = self.text.signIn
        return self.page(
            200, title: words.signedIn,
            """
            <p role="status">\(Self.escape(words.closeWindow))</p>
            <details><summary>\(Self.escape(words.forAnAppThatAsks))</summary>
            \(self.shown(token))</details>
            <script nonce="\(self.nonce)">
            (function () {
              var token = "\(Self.scriptText(token))";
              if (!window.opener) return;
              [\(names)].forEach(function (origin) {
                try {
                  window.opener.postMessage({ckWebAuthToken: token, ckSession: token}, origin);
                } catch (ignored) {}
              });
              window.close();
            })();
            </script>
            """)
    }

    /// Back to the app, with its token.
    func redirect(to url: String) -> HTTPResponse {
        var response = self.page(
            303, title: self.text.signIn.signedIn,
            "<p role=\"status\"><a href=\"\(Self.escape(url))\">"
                + "\(Self.escape(self.text.signIn.back))</a></p>")
        response.headers.set("Location", url)
        return response
    }
}
