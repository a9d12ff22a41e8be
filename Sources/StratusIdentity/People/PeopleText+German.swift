extension PeopleText {
    package static let german = PeopleText(
        tag: "de", ownName: "Deutsch",
        signIn: SignIn(
            title: "Anmelden",
            continueTo: "um mit {} fortzufahren",
            returnsTo: "Damit melden Sie sich an bei {}.",
            theOpener: "der Seite, die dieses Fenster geöffnet hat",
            tokenToCopy:
                "Sie erhalten ein Token zum Kopieren. Geben Sie es nur der App, die Sie benutzen.",
            email: "E-Mail-Adresse",
            password: "Passwort",
            stay: "Angemeldet bleiben",
            submit: "Anmelden",
            forgot: "Passwort vergessen?",
            signUp: "Konto anlegen",
            signedIn: "Sie sind angemeldet",
            copyToken:
                "Kopieren Sie dieses Token in die App, die danach fragt, und schließen Sie das "
                + "Fenster.",
            closeWindow: "Sie können dieses Fenster schließen.",
            forAnAppThatAsks: "Für eine App, die nach dem Token fragt",
            token: "Web-Auth-Token",
            back: "Zurück zur App"),
        account: AccountText(
            title: "Konto anlegen",
            givenName: "Vorname (freiwillig)",
            familyName: "Nachname (freiwillig)",
            discoverable:
                "Wer meine E-Mail-Adresse kennt, darf mich finden und meinen Namen sehen",
            submit: "Konto anlegen",
            haveOne: "Ich habe ein Konto",
            address: "E-Mail-Adresse: {}",
            isUnchecked:
                "Dieser Server prüft nicht, ob die Adresse Ihnen gehört. Andere finden Sie erst "
                + "darüber, wenn ein Administrator sie bestätigt hat.",
            sendLink: "Link anfordern",
            linkFollows:
                "Sie erhalten eine E-Mail mit einem Link. Öffnen Sie ihn, um ein Passwort zu wählen.",
            made: "Ihr Konto ist angelegt. Gehen Sie zurück zur App und melden Sie sich an.",
            look: "Sehen Sie in Ihre E-Mail",
            onItsWay:
                "Eine E-Mail ist unterwegs an {}. Öffnen Sie den Link darin, um fortzufahren.",
            nothingCame:
                "Nichts angekommen? Warten Sie einige Minuten, sehen Sie im Spam-Ordner nach und "
                + "prüfen Sie die Adresse."),
        password: PasswordText(
            changeTitle: "Passwort ändern",
            new: "Neues Passwort, mindestens 8 Zeichen",
            change: "Passwort ändern",
            endsSessions: "Sie werden überall abgemeldet.",
            changed:
                "Ihr Passwort ist geändert. Sie sind überall abgemeldet: Melden Sie sich neu an.",
            resetTitle: "Passwort wählen",
            set: "Passwort setzen",
            wasSet: "Ihr Passwort ist gesetzt. Gehen Sie zurück zur App und melden Sie sich an.",
            forgotTitle: "Passwort vergessen?",
            noEmail:
                "Dieser Server verschickt keine E-Mail. Bitten Sie seinen Betreiber um einen Link, "
                + "mit dem Sie ein neues Passwort wählen können.",
            linkFollows:
                "Sie erhalten eine E-Mail mit einem Link. Öffnen Sie ihn, um ein neues Passwort zu "
                + "wählen."),
        appPasswords: AppPasswordText(
            title: "App-Passwörter",
            intro:
                "Programme, die Ihre Dokumente einbinden, zeigen ein App-Passwort an Stelle Ihres "
                + "eigenen.",
            proceed: "Weiter",
            copy:
                "Kopieren Sie das Passwort von {} jetzt in das Programm. Es wird nur hier und nur "
                + "einmal gezeigt.",
            one: "App-Passwort",
            none: "Sie haben keine App-Passwörter.",
            everything: "alles",
            documents: "Dokumente",
            reading: "nur Lesen",
            writing: "Lesen und Schreiben",
            made: "angelegt am {}",
            withdraw: "Zurückziehen",
            withdrawing: "Programme mit diesem Passwort werden nicht mehr eingelassen.",
            withdrawThis: "{} zurückziehen",
            noApp:
                "Melden Sie sich zuerst in einer App an: Sie hat noch keine Dokumente von Ihnen.",
            newOne: "Ein neues",
            name: "Name, zum Beispiel des Programms",
            app: "App",
            readOnly: "Nur zum Lesen",
            showsAll: "Zeigt alles und nicht nur den Ordner Dokumente",
            submit: "App-Passwort anlegen",
            signedOut: "Sie wurden hier abgemeldet. Geben Sie Ihr Passwort noch einmal ein.",
            nameLength: "Ein Name hat 1 bis {} Zeichen.",
            chooseApp: "Wählen Sie eine App.",
            tooMany: "Sie haben {} App-Passwörter: Ziehen Sie zuerst eines zurück.",
            withdrawnAlready: "Dieses Passwort ist schon zurückgezogen."),
        problems: Problems(
            wrong: "Die E-Mail-Adresse oder das Passwort stimmt nicht.",
            busy: "Zu viele Leute melden sich gerade an. Versuchen Sie es gleich noch einmal.",
            passwordRule: "Ein Passwort hat {} bis {} Zeichen.",
            limited: "Zu viele Versuche. Versuchen Sie es in {} min noch einmal.",
            notAnAddress: "Das ist keine E-Mail-Adresse.",
            taken: "Das ging nicht. Wenn Sie schon ein Konto haben, melden Sie sich damit an.",
            unavailable: "Das ging gerade nicht. Versuchen Sie es gleich noch einmal.",
            otherSite:
                "Dieses Formular kam von einer anderen Seite. Öffnen Sie die Seite noch einmal.",
            halfForm: "Das Formular kam nicht vollständig an. Senden Sie es noch einmal.",
            noForm: "Das Formular ist nicht lesbar. Öffnen Sie die Seite noch einmal.",
            wrongMethod: "Diese Seiten nehmen GET und POST.",
            incompleteSignIn:
                "Dieser Link ist unvollständig oder zu alt. Gehen Sie zurück zur App und melden Sie "
                + "sich neu an.",
            incompleteLink: "Dieser Link ist unvollständig. Kopieren Sie ihn ganz.",
            usedLink: "Dieser Link ist schon benutzt oder zu alt. Fordern Sie einen neuen an.",
            usedSignIn:
                "Dieser Link ist schon benutzt. Gehen Sie zurück zur App und melden Sie sich neu an.",
            oldSignIn:
                "Dieser Link ist zu alt. Gehen Sie zurück zur App und melden Sie sich neu an.",
            oldSignUp:
                "Dieser Link ist zu alt. Gehen Sie zurück zur App und legen Sie das Konto neu an.",
            passwordChanged:
                "Ihr Passwort wurde inzwischen geändert. Gehen Sie zurück zur App und melden Sie "
                + "sich neu an.",
            unwelcome: "Die App darf niemanden mehr bitten, sich anzumelden.",
            closed: "Nur der Administrator kann hier Konten anlegen."),
        page: Page(
            done: "Fertig",
            failed: "Das ging nicht",
            notFound: "Diese Seite gibt es nicht.",
            front:
                "Dieser Server verwahrt die Daten von Apps. Anmelden können Sie sich in einer App, "
                + "nicht hier.",
            changePassword: "Passwort ändern",
            appPasswords: "App-Passwörter, für Programme, die Ihre Dokumente einbinden",
            privacy: "Datenschutz",
            terms: "Bedingungen",
            help: "Hilfe",
            appAtServer: "{} auf {}"),
        emails: Emails(
            signUpSubject: "Ihr Konto anlegen",
            signUp: """
                Jemand, wahrscheinlich Sie, möchte ein Konto für {}
                bei {} mit dieser E-Mail-Adresse anlegen.

                Öffnen Sie diese Adresse, um fortzufahren. Sie gilt einen Tag:

                {}

                Wenn Sie es nicht waren, tun Sie nichts: Es entsteht kein Konto.
                """,
            alreadyThereSubject: "Sie haben schon ein Konto",
            alreadyThere: """
                Jemand, wahrscheinlich Sie, möchte ein Konto für {}
                bei {} mit dieser E-Mail-Adresse anlegen. Es gibt schon eines:
                Gehen Sie zurück zur App und melden Sie sich an.

                Öffnen Sie diese Adresse, wenn Sie das Passwort vergessen haben:

                {}

                Wenn Sie es nicht waren, tun Sie nichts.
                """,
            resetSubject: "Ein neues Passwort wählen",
            reset: """
                Jemand, wahrscheinlich Sie, hat ein neues Passwort verlangt bei
                {}.

                Öffnen Sie diese Adresse, um es zu wählen. Sie gilt einmal, einen Tag lang:

                {}

                Wenn Sie es nicht waren, tun Sie nichts: Ihr Passwort bleibt, wie es ist.
                """,
            invitationSubject: "Ihr Konto",
            invitation: """
                Ein Administrator von {} hat ein Konto für Sie angelegt.

                Öffnen Sie diese Adresse, um ein Passwort zu wählen. Sie gilt einmal, einen Tag lang:

                {}
                """))
}
