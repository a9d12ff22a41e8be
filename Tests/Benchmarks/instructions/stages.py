"""The stages of a request, and how many instructions each takes.

What libraries and Swift's runtime take is charged to the functions of Stratus that called them: to each by its share of
the cost. The first rule that fits a function's module and demangled name says its stage.
"""
import re, subprocess

RULES = [(stage, re.compile(pattern)) for stage, pattern in [
    # What the compiler makes of values, whatever they are.
    ("values", r"destroy for |initializeWith|assignWith|outlined (consume|copy|init|assign|destroy|release|retain)"
               r"|storeEnumTag|getEnumTag|__deallocating_deinit|value witness"),
    ("JSON out", r"JSONOutput|JSONWriter|RecordForm|AnswerShape|RowJSON|Base64"),
    ("JSON in", r"JSONDocument|JSONTape|JSONNode|JSONObject|JSONValue|JSONText|JSONNumber|JSONArray|WordScan|JSONError|JSONRep"
                r"|Input\b"),
    ("request", r"OperationCompiler|ModifyRequest|QueryRequest|FieldReader|ZoneAddress|TypeTag|PredicateReader|NameRules|Draws"),
    ("metrics and log", r"StratusRuntime .*(Log\b|LogFormat|LogRecord|LogValue|LogOutput|LogMemory|ObservedHandler|RouteLabel|RequestRoute|Metric|Counter"
                        r"|Histogram|Gauge|WallTime|Instrument|RequestIdentity|ThreadTurn)"
                        r"|StratusModel .*RequestIdentity\.(hexadecimal|uuid)|LatencyHistogram"),
    ("hops", r"StratusRuntime .*(EventLoop|Inbox|TimerQueue|HeldWakes|WakeSignal|Signal|OwnedThread|SystemMutex|ThreadIdentity"
             r"|Flag|ChildTask|LongWork|FairQueue)"),
    ("connection", r"StratusRuntime"),
    ("heads", r"StratusHTTP "),
    ("credentials", r"StratusIdentity|StratusSealing|TokenCipher|FeedToken"),
    ("routing", r"StratusGateway .*(Surface|Route\b|OperationTable|CrossOrigin|WebServices|GatewayKernel|Admission|GatewayOperation|GatewayAnswer"
                r"|RequestRates|BodyBudget|AnswerRoom)|StratusNode"),
    ("request", r"StratusGateway"),
    ("coding", r"StratusCoding|Coding|encod|decod|CodingBuffer"),
    ("hops", r"StratusCluster .*(ClusterRouter|PartitionRouter|Placement|AnswerBudget)|StratusPlacement"),
    ("links", r"StratusCluster .*(Link|Peer|Stream|Frame|Envelope)|StratusTLS"),
    ("hops", r"StratusCluster"),
    ("consensus and log", r"StratusConsensus|StratusStorage .*(Log|Segment|Tail|BatchEncoder|Queued)"),
    ("rows", r"StratusStorage|StratusRows"),
    ("SQLite", r"StratusSQLite"),
    ("records", r"StratusRecords|StratusQuery"),
    ("model", r"StratusModel"),
]]
# In the order in which a request meets them; "other" is what no function of Stratus has called.
STAGES = ["connection", "heads", "routing", "credentials", "metrics and log", "JSON in", "request", "hops", "coding", "values",
          "model", "records", "rows", "SQLite", "consensus and log", "links", "JSON out", "other"]
MODULE = re.compile(r"\$s(\d+)")
ROUNDS = 60


def module(function):
    """The module of Stratus that the function is in, or None."""
    match = MODULE.match(function)
    if not match:
        return None
    name = function[match.end():match.end() + int(match[1])]
    return name if name.startswith("Stratus") else None


def demangled(functions):
    functions = sorted(functions)
    told = subprocess.run(["swift-demangle", "-simplified"], input="\n".join(functions), capture_output=True, text=True, check=True)
    return dict(zip(functions, told.stdout.split("\n")))


def is_cryptography(profile, function):
    return "libcrypto" in profile.objects.get(function, "")


def split(profile):
    """Instructions by stage, without those of libcrypto, and those of libcrypto."""
    cryptography = sum(cost for function, cost in profile.costs.items() if is_cryptography(profile, function))
    charged = charge(profile)
    names = demangled(function for function in charged if module(function))
    stages = dict.fromkeys(STAGES, 0.0)
    for function, cost in charged.items():
        stages[stage(function, names)] += cost
    return stages, cryptography


def stage(function, names):
    own = module(function)
    if not own:
        return "other"
    described = f"{own} {names[function]}"
    return next((stage for stage, pattern in RULES if pattern.search(described)), "other")


def charge(profile):
    """Instructions by function of Stratus, with what it has libraries do. What has no such caller keeps its own name."""
    callers = {}
    for (caller, callee), (_, cost) in profile.calls.items():
        if caller != callee and cost > 0:
            callers.setdefault(callee, []).append((caller, cost))
    charged, pending = {}, {}
    for function, cost in profile.costs.items():
        if not is_cryptography(profile, function):
            (charged if module(function) else pending)[function] = cost
    for _ in range(ROUNDS):
        moved = {}
        for function, cost in pending.items():
            above = callers.get(function, [])
            if not above:
                charged[function] = charged.get(function, 0) + cost
            whole = sum(share for _, share in above)
            for caller, share in above:
                into = charged if module(caller) else moved
                into[caller] = into.get(caller, 0) + cost * share / whole
        pending = moved
        if sum(map(abs, pending.values())) < 1:
            break
    # Functions that call each other in a circle.
    for function, cost in pending.items():
        charged[function] = charged.get(function, 0) + cost
    return charged
