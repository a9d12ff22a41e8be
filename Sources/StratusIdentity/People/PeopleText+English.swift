extension PeopleText {
    package static let english = PeopleText(
        tag: "en", ownName: "English",
        signIn: SignIn(
            title: "Sign in",
            continueTo: "to continue to {}",
            returnsTo: "This signs you in to {}.",
            theOpener: "the page that opened this window",
            tokenToCopy: "You get a token to copy. Give it only to the app that you use.",
            email: "E-mail address",
            password: "Password",
            stay: "Keep me signed in",
            submit: "Sign in",
            forgot: "Forgot your password?",
            signUp: "Create an account",
            signedIn: "You are signed in",
            copyToken: "Copy this token into the app that asks for it, and close this window.",
            closeWindow: "You can close this window.",
            forAnAppThatAsks: "For an app that asks for the token",
            token: "Web-auth token",
            back: "Back to the app"),
        account: AccountText(
            title: "Create an account",
            givenName: "Given name (optional)",
            familyName: "Family name (optional)",
            discoverable: "Others who know my e-mail address may find me and see my name",
            submit: "Create the account",
            haveOne: "I have an account",
            address: "E-mail address: {}",
            isUnchecked:
                "This server does not check that the address is yours. Others cannot find you by it "
                + "until an administrator has confirmed it.",
            sendLink: "Send me a link",
            linkFollows: "You get an e-mail with a link. Open it to choose a password.",
            made: "Your account was made. Go back to the app and sign in.",
            look: "Look into your e-mail",
            onItsWay: "An e-mail is on its way to {}. Open the link in it to go on.",
            nothingCame:
                "Nothing came? Wait a few minutes, look among unwanted mail, and check the address."
        ),
        password: PasswordText(
            changeTitle: "Change your password",
            new: "New password, 8 characters at least",
            change: "Change the password",
            endsSessions: "You will be signed out everywhere.",
            changed: "Your password was changed. You are signed out everywhere: sign in again.",
            resetTitle: "Choose a password",
            set: "Set the password",
            wasSet: "Your password was set. Go back to the app and sign in.",
            forgotTitle: "Forgot your password?",
            noEmail:
                "This server sends no e-mail. Ask whoever runs it for a link with which you can "
                + "choose a new password.",
            linkFollows: "You get an e-mail with a link. Open it to choose a new password."),
        appPasswords: AppPasswordText(
            title: "App passwords",
            intro: "Programs that mount your documents show an app password instead of your own.",
            proceed: "Continue",
            copy:
                "Copy the password of {} into the program now. It is shown only here, and only once.",
            one: "App password",
            none: "You have no app passwords.",
            everything: "everything",
            documents: "Documents",
            reading: "reading only",
            writing: "reading and writing",
            made: "made on {}",
            withdraw: "Withdraw",
            withdrawing: "Programs that show this password are let in no more.",
            withdrawThis: "Withdraw {}",
            noApp: "Sign in to an app first: it has no documents of yours yet.",
            newOne: "A new one",
            name: "Name, for instance of the program",
            app: "App",
            readOnly: "For reading only",
            showsAll: "Shows everything, and not the folder Documents alone",
            submit: "Make the app password",
            signedOut: "You were signed out here. Enter your password again.",
            nameLength: "A name has 1 to {} characters.",
            chooseApp: "Choose an app.",
            tooMany: "You have {} app passwords: withdraw one first.",
            withdrawnAlready: "This password was withdrawn already."),
        problems: Problems(
            wrong: "The e-mail address or the password is not right.",
            busy: "Too many people are signing in. Try again in a moment.",
            passwordRule: "A password has {} to {} characters.",
            limited: "Too many tries. Try again in {} min.",
            notAnAddress: "That is not an e-mail address.",
            taken: "That did not work. If you have an account already, sign in instead.",
            unavailable: "That did not work just now. Try again in a moment.",
            otherSite: "This form was sent from another site. Open the page again.",
            halfForm: "The form was not received completely. Send it again.",
            noForm: "The form cannot be read. Open the page again.",
            wrongMethod: "These pages take GET and POST.",
            incompleteSignIn:
                "This link is not complete or too old. Go back to the app and sign in again.",
            incompleteLink: "This link is incomplete. Copy all of it.",
            usedLink: "This link was already used or is too old. Ask for a new one.",
            usedSignIn: "This link was already used. Go back to the app and sign in again.",
            oldSignIn: "This link is too old. Go back to the app and sign in again.",
            oldSignUp: "This link is too old. Go back to the app and sign up again.",
            passwordChanged:
                "Your password was changed in the meantime. Go back to the app and sign in again.",
            unwelcome: "The app may no longer ask people to sign in.",
            closed: "Only the administrator can create accounts here."),
        page: Page(
            done: "Done",
            failed: "That did not work",
            notFound: "There is no such page.",
            front: "This server keeps the data of apps. You sign in from an app, and not here.",
            changePassword: "Change your password",
            appPasswords: "App passwords, for programs that mount your documents",
            privacy: "Privacy",
            terms: "Terms",
            help: "Help",
            appAtServer: "{} on {}"),
        emails: Emails(
            signUpSubject: "Create your account",
            signUp: """
                Somebody, probably you, wants to create an account for {}
                at {} with this e-mail address.

                Open this address to go on. It is good for a day:

                {}

                If it was not you, do nothing: no account is made.
                """,
            alreadyThereSubject: "You have an account already",
            alreadyThere: """
                Somebody, probably you, wants to create an account for {}
                at {} with this e-mail address. There is one already:
                go back to the app and sign in.

                Open this address if you have forgotten the password:

                {}

                If it was not you, do nothing.
                """,
            resetSubject: "Choose a new password",
            reset: """
                Somebody, probably you, asked for a new password at
                {}.

                Open this address to choose it. It works once, within a day:

                {}

                If it was not you, do nothing: your password stays as it is.
                """,
            invitationSubject: "Your account",
            invitation: """
                An administrator of {} has made an account for you.

                Open this address to choose a password. It works once, within a day:

                {}
                """))
}
