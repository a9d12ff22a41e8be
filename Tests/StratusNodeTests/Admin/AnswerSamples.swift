/// What a node answers to each request of the administrators' API, with every member that the
/// answer may have. The routes' own tests prove that a node answers so.
enum AnswerSamples {
    static let container = "/v1/containers/iCloud.a/environments/development"
    static let person = container + "/users/ann%40b.c"
    static let user = "/v1/users/ann%40b.c"
    private static let descriptor =
        #"{"container":"iCloud.a","environment":"development","state":"deleted","created":"2024-03-05T09:30:00.000Z","deleted":"2024-03-06T09:30:00.000Z","generation":2,"buckets":4,"placement":"zone","zoneBuckets":8"#
    private static let brand =
        ##"{"name":"Shelves","welcome":"Your books, everywhere","privacy":"https://a.b/p","terms":"https://a.b/t","help":"https://a.b/h","colour":"#0a7d4f","logo":"/brand/iCloud.a/development/AAECAwQFBgcICQoLDA0ODw.png"}"##
    private static let removal =
        #"{"isDone":false,"waitMilliseconds":0,"users":1,"zones":2,"records":30}"#

    static let node: [String: [String]] = [
        "GET /healthz": ["alive\n"],
        "GET /readyz": ["ready\n"],
        "GET /metrics": ["stratus_ready 1\n"],
        "GET /v1/status": [
            #"{"version":"0.1.0","libraries":[{"name":"SQLite","version":"3.40.1"}],"ready":false,"notReady":[{"component":"replicas","reason":"partition 3 has no leader"}],"warnings":[{"component":"disk","reason":"99 MiB are left"}],"freeBytes":104857600,"diskBytes":10737418240,"reserveBytes":1073741824,"startedAt":"2024-03-05T09:30:00.000Z","uptimeSeconds":93784.25,"dataDirectory":"/d","sealed":true,"clientURLs":["http://h:1","http://h:3"],"adminURL":"http://h:2","residentBytes":52428800,"requestsInFlight":4,"droppedLogLines":5,"partitions":[{"name":"0","applied":7,"durable":6},{"name":"1","applied":0,"durable":0,"problem":"it is torn"}]}"#
        ],
        "GET /v1/config": [
            #"{"configuration":[{"key":"client.listen","value":["127.0.0.1:8080"],"origin":"stratus.json5:3:5","reloads":false},{"key":"log.level","value":"info","origin":"default","reloads":true},{"key":"keys.sealingMaster","value":null,"origin":"default","reloads":true}]}"#
        ],
        "GET /v1/log-level": [#"{"level":"info"}"#],
        "PUT /v1/log-level": [#"{"level":"debug"}"#],
        "GET /v1/support": [
            #"{"files":[{"name":"log.txt","text":"a line\n"},{"name":"../x","text":"it does not get out"}]}"#
        ],
        "GET /v1/cluster/nodes/a/support": [#"{"files":[{"name":"log.txt","text":"of a\n"}]}"#],
        "GET /v1/cluster/nodes/b/support": [
            #"503 {"error":{"code":"UNAVAILABLE","reason":"node 'b' does not answer"}}"#
        ],
        "POST /v1/remains": [
            #"{"isCleared":true,"nodes":[{"node":"a","answers":true,"isCleared":true,"partitions":0,"log":false,"cleared":"2024-03-05T09:30:00.000Z"}],"positions":[{"partition":1,"applied":7},{"partition":2,"applied":90}]}"#
        ],
    ]

    static let assets: [String: [String]] = [
        "GET /v1/assets": [
            #"{"packBytes":10485760,"liveBytes":5242880,"missing":0,"unnamed":3,"damaged":4,"lost":5,"repaired":6,"removed":7,"lackingPartitions":8,"failingPartitions":0,"readingBackPartitions":0,"comparingPartitions":0}"#
        ],
        "POST /v1/assets/verify": [#"{"partitions":3}"#],
        "POST /v1/assets/audit": [#"{"partitions":4}"#],
        "GET /v1/assets/audit": [
            #"{"differences":[{"partition":2,"body":"a0","chunk":1,"kind":"missing"}],"next":"2/a0/1"}"#
        ],
        "GET /v1/assets/audit?after=2%2Fa0%2F1": [
            #"{"differences":[{"partition":2,"body":"a0","chunk":2,"kind":"leftOver"}]}"#
        ],
        "GET /v1/assets/lost": [
            #"{"container":"iCloud.a","environment":"development","database":"private","owner":"_u","size":9,"fileChecksum":"c3Vt","zone":"z","recordName":"r"}"#
                + "\n\n"
                + #"{"container":"iCloud.a","environment":"development","database":"public","owner":"","size":8,"fileChecksum":"c3Vt"}"#
                + "\n"
                + #"{"container":"iCloud.a","environment":"development","database":"public","owner":"","failing":"no majority"}"#
                + "\n{\"done\":true}\n"
        ],
        "GET /v1/assets/rows": [
            #"{"container":"iCloud.a","environment":"development","database":"private","owner":"_u","asset":"a1","fault":"has no body","zone":"z","recordName":"r"}"#
                + "\n" + #"{"asset":"a2","fault":"is named twice"}"# + "\n{\"done\":true}\n"
        ],
        "POST \(container)/assets/verify": [
            #"{"read":1,"bytes":2,"damaged":0,"missing":0,"elsewhere":0}"# + "\n"
                + #"{"database":"private","owner":"_u","failing":"no majority"}"# + "\n"
                + #"{"read":5,"bytes":3145728,"damaged":1,"missing":2,"elsewhere":3,"done":true}"#
                + "\n"
        ],
    ]

    static let cluster: [String: [String]] = [
        "GET /v1/cluster": [
            #"{"cluster":"00000000000000010000000000000002","isCurrent":true,"wallMilliseconds":100000,"answeredBy":1,"revision":9,"placementEpoch":3,"featureLevel":1,"partitionCount":2,"replicaCount":3,"possibleReplicaCount":2,"shortfalls":["partitions have 2 of 3 replicas: there are too few nodes"],"nodes":[{"node":1,"name":"a","address":"10.0.0.1:7400","state":"active","weight":100,"rack":"east","partitions":2,"share":2.0,"wasHeard":true,"lastHeardMilliseconds":99500,"featureLevel":1},{"node":2,"name":"b","address":"10.0.0.2:7400","state":"draining","weight":50,"rack":"","partitions":1,"share":0.67,"wasHeard":false,"lastHeardMilliseconds":58000,"featureLevel":1},{"node":3,"name":"c","address":"10.0.0.3:7400","state":"removed","weight":100,"rack":"","partitions":0,"share":null,"wasHeard":true,"lastHeardMilliseconds":null,"featureLevel":1}],"moves":[],"partitions":[{"partition":"system","replicas":[1,2],"leader":1},{"partition":"0","replicas":[1,2],"leader":2},{"partition":"1","replicas":[1],"leader":null}]}"#
        ],
        "GET /v1/cluster/health": [
            #"{"wallMilliseconds":100000,"revision":9,"isCurrent":true,"systemReplicas":[1,2],"nodes":[{"name":"a","node":1,"state":"active","reachable":true,"version":"0.1.0","wallMilliseconds":100000,"freeBytes":53687091200,"diskBytes":107374182400,"certificateEnds":34560000,"revision":9,"leads":2,"residentBytes":104857600,"requestsInFlight":7,"complaints":[{"component":"log","reason":"a sync took 4 s"},{"component":"clock","reason":"it is off"}]},{"name":"b","node":2,"state":"draining","reachable":false}],"groups":[{"partition":"system","leader":1,"joint":false,"behind":[]},{"partition":"0","leader":1,"joint":true,"behind":[1,2]}]}"#
        ],
        "GET /v1/cluster/upgrade": [
            #"{"featureLevel":1,"newestLevel":2,"buildLevel":2,"canFinalise":false,"isFinalised":false,"lagging":["b"],"nodes":[{"name":"a","node":1,"featureLevel":2},{"name":"b","node":2,"featureLevel":1}]}"#
        ],
        "POST /v1/cluster/upgrade": [#"{"revision":10}"#],
        "POST /v1/cluster/join-tokens": [#"{"token":"t0ken","expiresMilliseconds":3600000}"#],
        "GET /v1/cluster/certificates": [
            #"{"withdrawn":["ab12","cd34"],"certificates":[{"fingerprint":"ab12","of":"c","at":"2024-03-05T09:30:00.000Z","by":"mara"},{"fingerprint":"cd34"}]}"#
        ],
        "POST /v1/cluster/certificates/ab12/withdraw": [#"{"revision":10}"#],
        "POST /v1/cluster/certificates/ab12/restore": [#"{"revision":11}"#],
        "PUT /v1/cluster/nodes/a": [#"{"revision":10}"#],
        "POST /v1/cluster/nodes/a/undrain": [#"{"revision":10}"#],
        "POST /v1/cluster/nodes/a/drain": [#"{"revision":10}"#],
        "POST /v1/cluster/nodes/c/drain": [#"{"revision":10}"#],
        "POST /v1/cluster/nodes/a/remove": [
            #"409 {"error":{"code":"REFUSED","reason":"the node holds 3 replicas; to do it anyway, accept 3","cause":"holdsReplicas","accept":3}}"#
        ],
        "POST /v1/cluster/partitions/0/move": [#"{"revision":10}"#],
        "POST /v1/cluster/partitions/0/leader": [#"{"leader":"a"}"#],
    ]

    static let containers: [String: [String]] = [
        "GET /v1/containers": [
            #"{"containers":[\#(descriptor)},{"container":"iCloud.b","environment":"production","state":"active","created":"2024-03-05T09:30:00.000Z","generation":1,"buckets":1,"placement":"whole"}]}"#
        ],
        "GET /v1/containers/iCloud.a": [
            #"{"containers":[{"container":"iCloud.a","environment":"development","state":"active","created":"2024-03-05T09:30:00.000Z","generation":1,"buckets":1,"placement":"whole"},{"container":"iCloud.a","environment":"production","state":"erased","created":"2024-03-05T09:30:00.000Z","deleted":"2024-03-06T09:30:00.000Z","generation":2,"buckets":1,"placement":"whole"}]}"#
        ],
        "GET \(container)": [
            descriptor + #","schemaVersion":7,"recordTypes":3,"tokens":2,"keys":1,"users":5}"#
        ],
        "POST \(container)": ["201 " + descriptor + "}"],
        "DELETE \(container)": ["202 " + descriptor + "}"],
        "POST \(container)/erasure": [
            removal,
            #"{"isDone":true,"waitMilliseconds":0,"users":1,"zones":0,"records":4,"outstanding":["the schema, and how far each database had come","copies of the data directory made before"]}"#,
        ],
        "GET \(container)/usage": [
            #"{"databases":[{"database":"public","zones":1,"records":10,"bytes":100},{"database":"private","userRecordName":"_a","email":"mara@example.org","zones":2,"records":20,"bytes":200}],"next":"_a"}"#
        ],
        "GET \(container)/usage?after=_a": [
            #"{"databases":[{"database":"private","userRecordName":"_b","zones":3,"records":30,"bytes":300}]}"#
        ],
        "GET \(container)/places": [
            #"{"places":[{"part":"home","partition":"3","inUse":true},{"part":"bucket 2","inUse":false}]}"#
        ],
        "GET \(container)/brand": [Self.brand], "PUT \(container)/brand": [Self.brand],
        "DELETE \(container)/brand": [""],
        "POST \(container)/references/audit": [#"202 {"buckets":4}"#],
        "GET \(container)/schema": ["DEFINE SCHEMA RECORD TYPE A (x INT64);\n"],
        "PUT \(container)/schema": [
            #"{"version":3,"changes":["adds type 'A'","removes type 'B'"],"created":true}"#
        ],
        "POST /v1/containers/iCloud.a/environments/production/schema/promote": [
            #"{"version":4,"changes":["adds type 'A'"]}"#
        ],
        "POST \(container)/schema/reset": [
            #"{"state":"resetting","changes":["removes type 'B'"]}"#
        ],
        "POST \(container)/schema/reset/piece": [
            removal,
            #"{"isDone":true,"waitMilliseconds":0,"users":0,"zones":1,"records":2,"version":5}"#,
        ],
        "POST \(container)/copy": [
            #"{"made":50,"there":0,"fileBytes":700000,"waiting":[{"record":"a","reason":"not there yet"}],"refused":[],"next":"000442"}"#,
            #"{"made":1,"there":50,"fileBytes":0,"waiting":[],"refused":[{"record":"b","reason":"no such type"}]}"#,
        ],
    ]

    static let people: [String: [String]] = [
        "GET /v1/users": [
            #"{"users":[{"email":"d@e.f","id":"2c","isDisabled":false,"verified":"proof","created":"2024-03-05T09:30:00.000Z","lastSignIn":"2024-03-06T09:30:00.000Z"}],"next":"2c"}"#
        ],
        "GET /v1/users?after=2c": [
            #"{"users":[{"email":"ann@b.c","id":"0a1b","isDisabled":true,"verified":"nobody","created":"2024-03-05T09:30:00.000Z"}]}"#
        ],
        "POST /v1/users": [#"201 {"id":"0a1b"}"#],
        "GET \(user)": [
            #"{"id":"0a1b","email":"ann@b.c","givenName":"Ann","familyName":"Bee","isDisabled":false,"isDiscoverable":true,"hasPassword":true,"verified":"administrator","created":"2024-03-05T09:30:00.000Z","lastSignIn":"2024-03-05T09:30:00.000Z","containers":[{"container":"iCloud.a","environment":"development","userRecordName":"_u"}],"sessions":[{"id":"0f","container":"iCloud.a","environment":"development","opened":"2024-03-05T09:30:00.000Z","isOpen":true,"agent":"Firefox"},{"id":"1e","container":"iCloud.a","environment":"development","opened":"2024-03-04T09:30:00.000Z","isOpen":false,"agent":"closed"}]}"#
        ],
        "DELETE \(user)": [
            #"{"id":"0a1b","erased":"2024-03-05T09:30:00.000Z","containers":2,"zones":3,"records":40,"leaving":"rows without an owner","outstanding":["copies of the data directory made before"]}"#
        ],
        "POST \(user)/disable": ["{}"],
        "POST \(user)/enable": ["{}"],
        "POST \(user)/sign-out": ["{}"],
        "POST \(user)/reset-link": [
            #"201 {"path":"/reset?s=secret","url":"https://auth.b.c/reset?s=secret"}"#
        ],
        "POST \(user)/change": ["{}"], "POST \(user)/verification": ["{}"],
        "POST \(user)/invitation": ["202 {}"], "DELETE \(user)/sessions/0f": ["{}"],
        "POST \(user)/sign-in": [#"201 {"webAuthToken":"w3b"}"#],
        "POST \(user)/export": [
            #"{"format":"stratus user archive 1","files":true}"# + "\n"
                + #"{"database":"private","record":{"recordName":"r"}}"# + "\n"
                + #"{"fetch":{"file":"000102030405060708090a0b0c0d0e0f","fileChecksum":"AcfdYkS5HzvvKlBjo0xHWvRAB7GE","size":3,"ticket":"t1cket"}}"#
                + "\n"
        ],
        "GET /v1/exports/files/t1cket": [
            #"410 {"error":{"code":"LOST","reason":"no node has a sound copy"}}"#
        ],
        "GET \(container)/tokens": [
            #"{"tokens":[{"id":"ab","name":"web","created":"2024-03-05T09:30:00.000Z","callbackURL":"https://c","origins":["https://a.b","https://c.d"],"receivesNames":true},{"id":"cd","name":"app","created":"2024-03-05T09:30:00.000Z","origins":[],"receivesNames":false}]}"#
        ],
        "POST \(container)/tokens": [#"201 {"token":"t0ken","id":"ab","created":true}"#],
        "DELETE \(container)/tokens/ab": ["{}"],
        "GET \(container)/keys": [
            #"{"keys":[{"id":"ab","name":"import","created":"2024-03-05T09:30:00.000Z","userRecordName":"_k"}]}"#
        ],
        "POST \(container)/keys": [#"201 {"id":"ab","created":false}"#],
        "DELETE \(container)/keys/ab": ["{}"],
        "GET \(container)/members": [
            #"{"members":[{"userRecordName":"_u","roles":["editor","reader"],"isRestricted":false,"firstSeen":"2024-03-05T09:30:00.000Z"}]}"#
        ],
        "POST \(container)/members": ["{}"],
        "POST \(container)/access": [
            #"{"recordType":"Book","isInSchema":false,"userRecordName":"_u","roles":["_world","_icloud"],"read":{"allowed":true,"grantedTo":["_world"]},"create":{"allowed":true,"grantedTo":["_icloud"]},"write":{"allowed":false,"grantedTo":[]}}"#
        ],
        "GET /v1/audit": [
            #"{"entries":[{"number":7,"at":"2024-03-05T09:30:00.000Z","actor":"mara","action":"user add","subject":"0a1b"}]}"#
        ],
        "GET /v1/audit?verify=1": [#"{"entries":7,"whole":false,"brokenAt":5}"#],
        "GET \(person)/app-passwords": [
            #"{"appPasswords":[{"id":"p1","label":"laptop","made":"2024-03-05T09:30:00.000Z","access":"write","shows":"Documents"}]}"#
        ],
        "POST \(person)/app-passwords": [#"201 {"id":"p1","password":"s3cret"}"#],
        "DELETE \(person)/app-passwords/p1": ["{}"],
        "GET \(person)/key-values": [
            #"{"values":[{"key":"theme","value":{"string":"dark"}},{"key":"n","value":{"integer":7}}],"keys":2,"bytes":20,"removedKeys":1,"devices":1}"#
        ],
        "POST \(person)/key-values": ["{}"],
        "GET \(person)/key-values/devices": [
            #"{"devices":[{"device":"phone","lastBatch":4,"lastSeen":"2024-03-05T09:30:00.000Z"}]}"#
        ],
        "GET \(person)/documents": [
            #"{"items":[{"path":"Documents/a.txt","id":"i1","kind":"file","size":9,"edited":"2024-03-05T09:30:00.000Z","device":"mac","conflicts":1}]}"#
        ],
        "GET \(person)/documents/usage": [
            #"{"parts":[{"part":"Documents","files":1,"folders":2,"bytes":9,"versions":3},{"part":"the rest","files":0,"folders":0,"bytes":0,"versions":0}]}"#
        ],
        "GET \(person)/documents/versions": [
            #"{"versions":[{"contentTag":"z1","state":"current","size":9,"edited":"2024-03-05T09:30:00.000Z","device":"mac"}]}"#
        ],
        "GET \(person)/documents/locks": [
            #"{"locks":[{"path":"Documents/a.txt","token":"urn:x","scope":"exclusive","depth":"0","until":"2024-03-05T09:30:00.000Z"}]}"#
        ],
        "DELETE \(person)/documents/locks/urn%3Ax": ["{}"],
        "GET \(person)/documents/publications": [
            #"{"publications":[{"path":"Documents/a.txt","publication":"p1","name":"a.txt","size":9,"until":"2024-03-05T09:30:00.000Z"}]}"#
        ],
        "DELETE \(person)/documents/publications/p1": ["{}"],
    ]

    static let keys: [String: [String]] = [
        "GET /v1/sealing-keys": [
            #"{"keys":[{"number":1,"state":"opens"},{"number":2,"state":"seals","made":"2024-03-05T09:30:00.000Z"}]}"#
        ],
        "POST /v1/sealing-keys": [#"{"number":3,"revoked":0}"#],
        "POST /v1/sealing-keys/revocation": [#"{"number":3,"revoked":2}"#],
        "GET /v1/encryption-keys": [
            #"{"masters":[{"version":1,"state":"opens","containers":2,"check":"aa","noted":"bb","differs":true},{"version":2,"state":"seals","containers":1}],"withoutKey":1,"failing":[{"container":"iCloud.x","environment":"development","reason":"it is torn"}],"next":"development/iCloud.x"}"#
        ],
        "GET /v1/encryption-keys?after=development%2FiCloud.x": [
            #"{"masters":[{"version":1,"state":"opens","containers":3,"check":"aa","noted":"bb","differs":true},{"version":3,"state":"missing","containers":1,"noted":"dd"}],"withoutKey":2,"failing":[]}"#
        ],
        "POST /v1/encryption-keys/rotation": [
            #"{"version":2,"wrapped":5,"failing":[{"container":"iCloud.x","environment":"development","reason":"it is torn"}],"next":"development/iCloud.x"}"#,
            #"{"version":2,"wrapped":1,"failing":[]}"#,
        ],
        "POST /v1/encryption-keys/databases/rotation": [
            #"{"owner":"_u","failing":"no majority"}"# + "\n" + #"{"owner":"","failing":"torn"}"#
                + "\n"
                + #"{"databases":3,"records":40,"files":5,"fileBytes":99,"keptFiles":1,"olderKeys":2,"failures":2,"resumed":"2024-03-05T09:30:00.000Z","done":true}"#
                + "\n"
        ],
        "POST /v1/encryption-keys/containers/rotation": [
            #"{"version":2,"keys":1,"pushKeys":0,"partitions":1,"failures":0,"waitsMilliseconds":500,"retired":false}"#
                + "\n"
                + #"{"version":2,"keys":9,"pushKeys":1,"partitions":2,"failures":0,"waitsMilliseconds":0,"retired":true,"resumed":"2024-03-05T09:30:00.000Z","done":true}"#
                + "\n"
        ],
        "POST /v1/encryption-keys/forgetting": [
            #"{"waitsMilliseconds":5}"#, #"{"next":"development/iCloud.x"}"#,
            #"{"forgotten":true}"#,
        ],
    ]

    private static let devices =
        #""devices":[{"device":"ab12","kind":"apns","apnsEnvironment":"development","topic":"org.a","registered":"2024-03-05T09:30:00.000Z","expires":"2024-04-05T09:30:00.000Z","moved":"2024-03-05T09:31:00.000Z","behind":3,"trouble":"the container is paused"},{"device":"cd34","kind":"poll","moved":"2024-03-05T09:31:00.000Z","behind":0}]"#

    static let pushes: [String: [String]] = [
        "GET /v1/push": [
            #"{"active":1,"parked":2,"lanes":[{"lane":"apns","state":"open","waiting":3,"underWay":4,"answers":5,"trouble":"slow"},{"lane":"web","state":"idle","waiting":0,"underWay":0,"answers":0}]}"#
        ],
        "GET \(container)/push": [
            #"{"paused":true,"apns":[{"team":"DEF123GHIJ","key":"ABC123DEFG","topics":["org.a","org.b"],"created":"2024-03-05T09:30:00.000Z"}],"vapid":[{"number":1,"publicKey":"cHVi","contact":"mailto:a@b.c","created":"2024-03-05T09:30:00.000Z"}]}"#
        ],
        "POST \(container)/push/apns": ["{}"],
        "DELETE \(container)/push/apns/DEF123GHIJ/ABC123DEFG": ["{}"],
        "POST \(container)/push/apns/check": [
            #"{"checks":[{"team":"DEF123GHIJ","key":"ABC123DEFG","good":false,"answer":"403 InvalidProviderToken"}]}"#
        ],
        "POST \(container)/push/vapid": [
            #"201 {"number":2,"publicKey":"cHViMg","contact":"mailto:a@b.c","created":"2024-03-05T09:30:00.000Z"}"#
        ],
        "POST \(container)/push/pause": ["{}"],
        "GET \(container)/push/trace": [
            #"{"pushes":[{"event":7,"database":"private","zone":"z","record":"r","subscription":"s","user":"_u","device":"ab12","lane":"apns","saved":"2024-03-05T09:30:00.000Z","matched":"2024-03-05T09:30:01.000Z","sent":"2024-03-05T09:30:02.000Z","sendings":1,"verdict":"taken","judged":"2024-03-05T09:30:03.000Z","settled":"2024-03-05T09:30:04.000Z"},{"event":8,"database":"private","zone":"z","subscription":"s","user":"_u","device":"ab12","lane":"apns","matched":"2024-03-05T09:30:01.000Z","sendings":0}]}"#
        ],
        "GET \(container)/push/devices": ["{" + devices + "}"],
        "POST \(container)/push/send": [
            #"{"device":"ab12","lane":"apns","accepted":false,"answer":"410 Unregistered"}"#
        ],
        "GET \(container)/push/explain": [
            #"{"reaches":false,"recordFound":true,"subscriptions":[{"subscription":"s","kind":"query","fires":true,"why":"it matches"},{"subscription":"t","kind":"zone","fires":false,"why":"another zone"}],"cut":true,"#
                + devices + "}"
        ],
    ]

    static let all: [String: [String]] = [
        node, assets, cluster, containers, people, keys, pushes,
    ].reduce(into: [:]) { $0.merge($1) { $1 } }
}
