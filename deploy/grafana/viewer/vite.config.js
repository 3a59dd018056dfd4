import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  plugins: [react()],
  define: { 'process.env.NODE_ENV': '"production"', 'process.env': '{}' },
  build: { minify: false, chunkSizeWarningLimit: 9999, reportCompressedSize: false },
})
