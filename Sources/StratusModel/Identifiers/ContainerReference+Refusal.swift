extension ContainerReference {
    /// The error text that every program gives for an invalid container name.
    package static func refusal(of name: String) -> String {
        "'\(name)' cannot name a container: use 1 to 255 ASCII characters without spaces"
    }
}
