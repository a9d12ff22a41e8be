import ChildProcesses
import Foundation
import Testing

/// Which C libraries a program loads.
@Suite struct LinkedLibrariesTests {
    private func libraries(of program: String) async throws -> String {
        let ended = try await ChildProcess.run("/usr/bin/ldd", [Program.path(program)])
        try #require(ended.code == 0, "\(ended.errors)")
        return ended.output
    }

    @Test func `stratusctl links no database`() async throws {
        #expect(try await self.libraries(of: "stratus").contains("sqlite"))
        let control = try await self.libraries(of: "stratusctl")
        #expect(control.contains("libssl"))
        #expect(!control.contains("sqlite"))
    }
}
