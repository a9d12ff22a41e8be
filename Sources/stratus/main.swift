import StratusNode

StratusProgram.main()
