/// Runs `body` in a child task of the current one, and returns what it returns.
///
/// A task keeps the memory of its deepest calls until it ends: some kilobytes for a question to a
/// partition. A request that is held for minutes asks in child tasks, so that it waits with little.
/// A task that prefers no executor runs `body` itself: a child would wait behind all others.
package func inChildTask<Result: Sendable>(
    _ body: @escaping @Sendable () async -> Result
) async -> Result {
    guard withUnsafeCurrentTask(body: { $0?.unownedTaskExecutor != nil }) else {
        return await body()
    }
    async let result = body()
    return await result
}
