import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime

/// The HTML of the sign-in pages. Everything that somebody typed is escaped; nothing is loaded.
struct SignInHTML {
    /// Names the only style and the only script that the browser may use.
    let nonce: String

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

    // MARK: Pages

    func signIn(
        link: String, container: String, to receiver: SignInReceiver, canSignUp: Bool,
        email: String = "",
        problem: String? = nil, status: Int = 200
    ) -> HTTPResponse {
        self.page(
            status, title: "Sign in",
            """
            <p>to continue to <strong>\(Self.escape(container))</strong></p>
            \(Self.says(receiver))
            \(self.problem(problem))
            <form method="post" action="/signin" autocomplete="on">
            <input type="hidden" name="t" value="\(Self.escape(link))">
            \(Self.emailField(email))
            \(Self.passwordField("password", "Password", "current-password"))
            <label class="check"><input type="checkbox" name="stay" value="1"> Keep me signed in</label>
            <button type="submit">Sign in</button>
            </form>
            <p><a href="/forgot">Forgot your password?</a></p>
            \(canSignUp ? "<p><a href=\"/signup?t=\(Self.escape(link))\">Create an account</a></p>" : "")
            """)
    }

    func signUp(
        link: String, container: String, to receiver: SignInReceiver,
        fields: SignUpFields = SignUpFields(),
        problem: String? = nil, status: Int = 200
    ) -> HTTPResponse {
        // Behind a link of an e-mail no window waits: the person signs in where the app is.
        let signsIn = fields.proof == nil || !receiver.isWindow
        let stay =
            "<label class=\"check\"><input type=\"checkbox\" name=\"stay\" value=\"1\"> Keep me signed in</label>"
        return self.page(
            status, title: "Create an account",
            """
            <p>to continue to <strong>\(Self.escape(container))</strong></p>
            \(signsIn ? Self.says(receiver) : "")
            \(self.problem(problem))
            <form method="post" action="/signup" autocomplete="on">
            <input type="hidden" name="t" value="\(Self.escape(link))">
            \(Self.textField("given", "Given name (optional)", "given-name", fields.givenName))
            \(Self.textField("family", "Family name (optional)", "family-name", fields.familyName))
            \(Self.addressOf(fields))
            \(Self.passwordField("password", "Password, 8 characters at least", "new-password"))
            <label class="check"><input type="checkbox" name="discoverable" value="1"\
            \(fields.isDiscoverable ? " checked" : "")> Others who know my e-mail address may find me \
            and see my name</label>
            \(signsIn ? stay : "")
            <button type="submit">Create the account</button>
            </form>
            <p><a href="/signin?t=\(Self.escape(link))">I have an account</a></p>
            """)
    }

    /// A proven address stands as it is. Where nobody checks one, the page says so.
    private static func addressOf(_ fields: SignUpFields) -> String {
        if let proof = fields.proof {
            return "<p>E-mail address: <strong>\(self.escape(fields.email))</strong></p>"
                + "<input type=\"hidden\" name=\"p\" value=\"\(self.escape(proof))\">"
        }
        let note =
            "<p>This server does not check that the address is yours. Others cannot find you by it "
            + "until an administrator has confirmed it.</p>"
        return self.emailField(fields.email) + (fields.isUnchecked ? note : "")
    }

    func password(email: String = "", problem: String? = nil, status: Int = 200) -> HTTPResponse {
        self.page(
            status, title: "Change your password",
            """
            \(self.problem(problem))
            <form method="post" action="/password" autocomplete="on">
            \(Self.emailField(email))
            \(Self.passwordField("password", "Password", "current-password"))
            \(Self.passwordField("new", "New password, 8 characters at least", "new-password"))
            <button type="submit">Change the password</button>
            </form>
            <p>You will be signed out everywhere.</p>
            """)
    }

    func reset(secret: String, problem: String? = nil, status: Int = 200) -> HTTPResponse {
        self.page(
            status, title: "Choose a password",
            """
            \(self.problem(problem))
            <form method="post" action="/reset" autocomplete="on">
            <input type="hidden" name="s" value="\(Self.escape(secret))">
            \(Self.passwordField("new", "New password, 8 characters at least", "new-password"))
            <button type="submit">Set the password</button>
            </form>
            """)
    }

    func message(_ status: Int, _ text: String) -> HTTPResponse {
        self.page(
            status, title: status < 400 ? "Done" : "That did not work",
            "<p role=\"\(status < 400 ? "status" : "alert")\">\(Self.escape(text))</p>")
    }

    /// What stands at `/`.
    func front(hasPeople: Bool) -> HTTPResponse {
        let links = """
            <p><a href="/password">Change your password</a><br>
            <a href="/app-passwords">App passwords, for programs that mount your documents</a></p>
            """
        return self.page(
            200, title: "Stratus",
            "<p>This server keeps the data of apps. You sign in from an app, and not here.</p>\n"
                + (hasPeople ? links : ""))
    }

    static func says(_ receiver: SignInReceiver) -> String {
        let (before, name, after) = receiver.sentence
        return "<p>\(before)<strong>\(self.escape(name))</strong>\(after)</p>"
    }

    /// Nobody hears the token: the person copies it.
    func show(token: String) -> HTTPResponse {
        self.page(
            200, title: "You are signed in",
            """
            <p role="status">Copy this token into the app that asks for it, and close this window.</p>
            <label>Web-auth token<input readonly value="\(Self.escape(token))"></label>
            """)
    }

    /// Posts the token to the window that opened this one: one message, an object, then closes. Who
    /// has no such window finds the token on the page.
    func handOver(token: String, to targets: [String]) -> HTTPResponse {
        let names = targets.map { "\"\(Self.scriptText($0))\"" }.joined(separator: ",")
        return self.page(
            200, title: "You are signed in",
            """
            <p role="status">You can close this window.</p>
            <details><summary>For an app that asks for the token</summary>
            <label>Web-auth token<input readonly value="\(Self.escape(token))"></label></details>
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
            303, title: "You are signed in",
            "<p role=\"status\"><a href=\"\(Self.escape(url))\">Back to the app</a></p>")
        response.headers.set("Location", url)
        return response
    }

    // MARK: Parts

    func problem(_ text: String?) -> String {
        guard let text else { return "" }
        return "<p class=\"problem\" role=\"alert\">\(Self.escape(text))</p>"
    }

    static func emailField(_ value: String) -> String {
        "<label>E-mail address<input type=\"email\" name=\"email\" required maxlength=\"254\" "
            + "autocomplete=\"username\" value=\"\(Self.escape(value))\"></label>"
    }

    static func passwordField(_ name: String, _ label: String, _ purpose: String) -> String {
        "<label>\(label)<input type=\"password\" name=\"\(name)\" required maxlength=\"256\" "
            + "autocomplete=\"\(purpose)\"></label>"
    }

    static func textField(
        _ name: String, _ label: String, _ purpose: String, _ value: String
    ) -> String {
        "<label>\(label)<input name=\"\(name)\" maxlength=\"100\" autocomplete=\"\(purpose)\" "
            + "value=\"\(Self.escape(value))\"></label>"
    }

    func page(_ status: Int, title: String, _ content: String) -> HTTPResponse {
        let text = """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>\(title)</title>
            <style nonce="\(self.nonce)">
            body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:2rem auto;padding:0 1rem;\
            color:#1a1a1a;background:#fff}
            h1{font-size:1.4rem;margin:0 0 .5rem}h2{font-size:1.1rem}
            label{display:block;margin:.8rem 0}
            label.check{display:flex;gap:.5rem;align-items:baseline}
            input:not([type=checkbox]),select{display:block;width:100%;box-sizing:border-box;font:inherit;\
            padding:.5rem;border:1px solid #767676;border-radius:.3rem}
            button{font:inherit;padding:.6rem 1.2rem;border:0;border-radius:.3rem;background:#0b57d0;\
            color:#fff;width:100%;margin-top:.5rem}
            :focus-visible{outline:3px solid #0b57d0;outline-offset:2px}
            .problem{border-left:4px solid #b3261e;padding:.3rem .8rem;background:#fdecea}
            a{color:#0b57d0}summary{cursor:pointer}hr{border:0;border-top:1px solid #999}
            button.away{background:none;color:#b3261e;border:1px solid}
            @media (prefers-color-scheme:dark){body{color:#eee;background:#161616}\
            input:not([type=checkbox]){background:#222;color:#eee;border-color:#999}\
            .problem{background:#3b1512}a{color:#a8c7fa}button.away{color:#f2b8b5}}
            </style></head>
            <body><main><h1>\(title)</h1>
            \(content)
            </main></body></html>

            """
        return HTTPResponse(
            status: status,
            headers: [
                "Content-Type": "text/html; charset=utf-8",
                "Cache-Control": "no-store",
                // Where a form's answer leads is not limited: an app's address may be anything.
                "Content-Security-Policy":
                    "default-src 'none'; style-src 'nonce-\(self.nonce)'; "
                    + "script-src 'nonce-\(self.nonce)'; base-uri 'none'; frame-ancestors 'none'",
                "X-Frame-Options": "DENY",
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "same-origin",
            ], body: .bytes(Bytes(text.utf8)))
    }

    // MARK: Escaping

    static func escape(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    /// Inside a script's string: what could end the string or the script is written as an escape.
    static func scriptText(_ text: String) -> String {
        var escaped = ""
        for unit in text.utf16 {
            switch unit {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x2F, 0x3A, 0x5F, 0x2A:
                escaped.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
            default:
                let digits = String(unit, radix: 16)
                escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return escaped
    }
}
